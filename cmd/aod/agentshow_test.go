package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

const shownAgent = `{"name":"reviewer","kind":"agent","version":"0123456789abcdef0","description":"looks\u001b[2J at code","source":"directory","origin":"/units/reviewer",
 "image":"aod-capsule/reviewer:0123","concurrency":2,"access":"read-only","since":"2026-01-02T03:04:05Z","problem":null,
 "agent":{"type":"stdin-stdout","enabled":true,"command":["cli","--json"],"program":PROGRAM,"flags":{"model":"m","fast":true},"dir":"/workspace/project","mode":"interactive",
  "input":"stdin","output":"stdout","protocol":"acp","env":["GREETING"],"caller_env":["LANG","TZ"],"approval":"ask","session":{"idle":"30m","keep_alive":true}},
 "status":{"running":1,"waiting":3,"sessions":2,"last_run":{"id":"0198c0de","state":"completed","outcome":"success","created_at":"2026-01-02T03:04:05Z"},"next":{"schedule":"nightly","at":"2026-01-03T03:04:05Z"},
  "lately":{"runs":100,"succeeded":98,"p50_ms":1234.5,"p95_ms":61000}}}`

func TestAgentShowTellsHowAnAgentIsCalled(t *testing.T) {
	alone(t)
	program := `{"found":true}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/units/reviewer" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(strings.Replace(shownAgent, "PROGRAM", program, 1)))
	}))
	t.Cleanup(server.Close)
	show := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := command(t, t.Context(), append([]string{"agent", "show", "reviewer", "--server", server.URL}, args...)...)
		if code != 0 || stderr != "" {
			t.Fatalf("code %d, %s", code, stderr)
		}
		return stdout
	}
	for name, c := range map[string]struct {
		program string
		lines   []string
	}{
		"of one whose program is there": {`{"found":true}`, []string{
			"agent +interactive.*stdin-stdout.*acp", "command +cli --json", "program +it is in its image", "flag +fast: true", "flag +model: m",
			"starts in +/workspace/project", "variables +GREETING", "callers set +LANG, TZ", "permits +ask", "sessions +one process for all turns, idle for 30m",
			"now +1 running, 3 waiting", "open +2 sessions", "next run +.*by nightly", "lately +98 of the last 100 runs succeeded, half of them took up to 1.2s, 95 % up to 1m1s", "last run +0198c0de.*success", "at once +2 runs", "image +aod-capsule/reviewer:0123",
		}},
		"of one whose program is missing": {`{"found":false,"problem":"the agent's command is not in its image i:1: cli: not found in the PATH /bin\u001b[2J","hint":"install it"}`, []string{
			"program +the agent's command is not in its image i:1: cli: not found in the PATH /bin", " +install it",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			program = c.program
			page := show()
			for _, line := range c.lines {
				if !regexp.MustCompile(`(?m)^` + line).MatchString(page) {
					t.Errorf("no line %q in\n%s", line, page)
				}
			}
			if strings.Contains(page, "\x1b[2J") {
				t.Error("what others wrote reaches the terminal as it is")
			}
			var unit api.Unit
			if err := json.Unmarshal([]byte(show("--json")), &unit); err != nil || unit.Agent == nil || unit.Agent.Program == nil || unit.Agent.Program.Found != (len(c.lines) > 2) {
				t.Errorf("as JSON: %+v, %v", unit.Agent, err)
			}
		})
	}
	program = "null"
	if page := show(); strings.Contains(page, "program") {
		t.Errorf("of one that nobody looked up:\n%s", page)
	}
	if code, _, stderr := command(t, t.Context(), "agent", "show", "nobody", "--server", server.URL); code == 0 || stderr == "" {
		t.Errorf("of one that isn't there: %d, %q", code, stderr)
	}
}
