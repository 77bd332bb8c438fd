package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// teams is a server with the teams a and b, whose tokens a and b may do everything in theirs. What a has is what b may
// not know of.
type teams struct {
	*walled
	has map[string][]string // ids of what a has, by their nouns
}

// asksFlow is a flow that asks people, and shows them what its input says.
const asksFlow = "start: make\nnodes:\n  make: {run: writer, with: {}, next: q}\n  q: {ask: \"canary ${{ input.text ?? 'x' }}?\", show: {doc: \"${{ input.text ?? 'x' }}\"}, next: {approve: end, reject: end}}\n"

// teamUnits are units of directories, for all.
var teamUnits = map[string]map[string]string{
	"asker": {
		"agent.yaml":  "name: asker\nkind: flow\n",
		"flow.yaml":   asksFlow,
		"schema.json": `{"input": {"type": "object", "properties": {"text": {"type": "string"}}}, "output": {"type": "object"}}`,
	},
	"talker": {
		"Dockerfile": "FROM base:1\n",
		"agent.yaml": "kind: agent\nagent: {command: [talk], mode: interactive, protocol: acp}\nsession: {keep_alive: true}\n",
	},
}

var everyScope = []access.Scope{access.Read, access.Run, access.Upload, access.Admin}

// newTeams is the server before a has anything, beside other tests.
func newTeams(t *testing.T, change func(*config.Config)) *teams {
	t.Helper()
	t.Parallel()
	w := newWalledAt(t, filepath.Join(t.TempDir(), "data"), func(c *config.Config) {
		c.A2A.Push, c.A2A.PushPrivate = true, []string{"hook.example=127.0.0.1"}
		c.Webhooks.Private = c.A2A.PushPrivate
		c.Hooks = map[string]config.HookConfig{"alpha-hook": {Unit: "writer", Team: "a", Secret: "none"}}
		for unit, files := range teamUnits {
			for name, text := range files {
				write(t, text, c.Units[0], unit, name)
			}
		}
		if change != nil {
			change(c)
		}
	})
	w.keys["operator"] = w.key
	for _, team := range []string{"a", "b"} {
		w.grant(access.Grant{Name: team, Scopes: everyScope, Teams: []string{team}})
	}
	return &teams{w, map[string][]string{}}
}

// making sends a request of a's, which must succeed, and returns the id in its answer.
func (w *teams) making(method, path, body string, headers ...string) string {
	w.Helper()
	code, answer := w.asks("a", method, path, body, headers...)
	if code/100 != 2 || strings.Contains(answer, `"error":{"code"`) {
		w.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	var made struct{ ID, Name string }
	_ = json.Unmarshal([]byte(answer), &made)
	return made.ID + made.Name
}

// record is a's run as it stands.
func (w *teams) record(id string) (record api.Record) {
	w.Helper()
	code, answer := w.asks("a", http.MethodGet, "/v1/runs/"+id, "")
	if code != http.StatusOK {
		w.Fatalf("%d %s", code, answer)
	}
	w.must(json.Unmarshal([]byte(answer), &record))
	return record
}

// run has a make a run of a unit, and waits until it is over, or as it is to be.
func (w *teams) run(unit, text string, is func(api.Record) bool, headers ...string) string {
	w.Helper()
	id := w.making(http.MethodPost, "/v1/runs", `{"unit":"`+unit+`","input":{"text":"`+text+`"},"context":"a-context","metadata":{"who":"canary","mcp_client":"x"}}`, headers...)
	testkit.Eventually(w, "its run is as it is to be", func() bool { return is(w.record(id)) })
	return id
}

// isOver reports whether a run has ended, and what it had is gone: nothing of it changes any more.
func isOver(r api.Record) bool {
	return r.Outcome != "" && r.Transitions[len(r.Transitions)-1].State == api.Idle
}

func isRunning(r api.Record) bool { return r.State == api.Running }

// fill gives a one of everything.
func (w *teams) fill() {
	w.Helper()
	files := writerFiles("alpha-unit")
	files["tools.yaml"] = "- {name: w, capsule: writer}\n" // so that writer is called by it
	w.making(http.MethodPut, "/v1/units/alpha-unit", tarOf(w, files), asTar)
	w.making(http.MethodPut, "/v1/units/alpha-talk", tarOf(w, teamUnits["talker"]), asTar)
	done := w.run("writer", "show", isOver, "Idempotency-Key: a-key")
	own := w.run("alpha-unit", "", isOver)
	waits := w.run("writer", "wait", isRunning)
	asks := w.run("asker", "canary", func(r api.Record) bool { return r.Question != nil })
	session := w.making(http.MethodPost, "/v1/sessions", `{"unit":"alpha-talk"}`)
	turn := w.making(http.MethodPost, "/v1/sessions/"+session+"/messages", `{"message":"canary"}`)
	testkit.Eventually(w, "the turn is over", func() bool { return isOver(w.record(turn)) })
	w.making(http.MethodPut, "/v1/schedules/alpha-plan", `{"unit":"alpha-unit","every":"1000h","note":"canary"}`)
	scheduled := w.making(http.MethodPost, "/v1/schedules/alpha-plan/run", "")
	testkit.Eventually(w, "the schedule's run is over", func() bool { return isOver(w.record(scheduled)) })
	for _, id := range []string{waits, asks} {
		w.making(http.MethodPost, "/a2a/_", toPushOf(id))
	}
	w.making(http.MethodPost, "/a2a/writer/message:send", `{"message":{"messageId":"m0","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{"taskPushNotificationConfig":{"url":"http://hook.example:9/in"}}}`)
	w.has = map[string][]string{
		"run": {done, own, waits, asks, turn, scheduled}, "session": {session}, "question": {w.record(asks).Question.ID},
		"unit": {"a.alpha-unit", "alpha-unit", "a.alpha-talk"}, "schedule": {"a.alpha-plan", "alpha-plan"}, "token": {"alpha-aide"}, "hook": {"alpha-hook"}, "worker": {"alpha-worker"},
		"webhook": {w.making(http.MethodPost, "/v1/webhooks", `{"url":"http://hook.example:9/in"}`)},
	}
	w.making(http.MethodPost, "/v1/tokens", `{"name":"alpha-aide","scopes":["read"]}`)
}

// toPushOf sets up a push for a task.
func toPushOf(run string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{"taskId":"` + run + `","id":"p","url":"http://hook.example:9/in"}}`
}

// never are the ids of what never was, by what a has.
func never(noun, has string) string {
	switch noun {
	case "unit", "schedule", "token", "hook", "worker":
		return strings.Replace(has, "alpha", "omega", 1)
	}
	return noRun
}

var (
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	tried  = regexp.MustCompile(`"deliveries":{[^}]*}[^}]*`) // of a push, whose receiver is tried again and again
	unsaid = []string{"Date", "X-Request-Id", "Content-Length", "Last-Modified"}
)

// said is an answer as a text: status, headers and body, without what every answer has of its own.
func said(w testing.TB, response *http.Response) string {
	w.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		w.Fatal(err)
	}
	for _, name := range unsaid {
		response.Header.Del(name)
	}
	var b strings.Builder
	b.WriteString(response.Status + "\n")
	for _, name := range slices.Sorted(maps.Keys(response.Header)) {
		b.WriteString(name + ": " + strings.Join(response.Header[name], ",") + "\n")
	}
	b.Write(body)
	return tried.ReplaceAllString(times.ReplaceAllString(b.String(), "TIME"), "TRIED")
}

// statelessly is a request of MCP without a session.
func statelessly(method, params string) string {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`
	more := strings.TrimSuffix(params, "}")
	if more != "{" {
		more += ","
	}
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + more + meta + `}`
}

// statelessHeaders are those of such a request.
func statelessHeaders(method, name string) []string {
	headers := []string{"Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: " + method}
	if name != "" {
		headers = append(headers, "Mcp-Name: "+name)
	}
	return headers
}
