package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/client/agenthttp/check"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// echoAgent is an agent with one task, ECHO, and may be one that forgets its outputs.
type echoAgent struct {
	forgets bool
	tokens  atomic.Int32 // requests that came with one
	inputs  atomic.Int32 // requests that came with {"a":1}
}

func (e *echoAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		e.tokens.Add(1)
	}
	raw, _ := io.ReadAll(r.Body)
	asked, err := agenthttp.ParseRequest(raw)
	if string(asked.Inputs) == `{"a":1}` {
		e.inputs.Add(1)
	}
	answer := agenthttp.Response{RequestID: asked.RequestID, Warnings: []string{"refused"}}
	switch {
	case r.Method != http.MethodPost:
		http.NotFound(w, r)
		return
	case err != nil || asked.TaskType != "ECHO":
		w.WriteHeader(http.StatusUnprocessableEntity)
	default:
		answer = agenthttp.Response{RequestID: asked.RequestID, TaskType: "ECHO", Status: agenthttp.StatusOK, OK: true}
	}
	if answer.OK && r.URL.Path == agenthttp.StreamPath {
		answer.Type = agenthttp.Final
	}
	body, _ := json.Marshal(answer)
	if answer.OK && r.URL.Path == agenthttp.StreamPath {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = httpwire.NewEventWriter(w).Write(httpwire.Event{Name: "final", Data: string(body)})
		return
	}
	if e.forgets {
		body = []byte(strings.ReplaceAll(string(body), `"ok":true,"outputs":{}`, `"ok":true,"outputs":null`))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func serveEcho(t *testing.T, forgets bool) (e *echoAgent, target string) {
	t.Helper()
	e = &echoAgent{forgets: forgets}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return e, s.URL + "=ECHO"
}

func TestCheckAgent(t *testing.T) {
	alone(t)
	t.Setenv("AGENT_CONTRACT_TARGETS", "")
	_, good := serveEcho(t, false)
	_, forgetful := serveEcho(t, true)
	t.Run("a good agent ends in 0", func(t *testing.T) {
		code, stdout, stderr := command(t, t.Context(), "check-agent", good)
		if code != 0 || stderr != "" || strings.Contains(stdout, "FAIL") {
			t.Errorf("code %d, %s%s", code, stdout, stderr)
		}
		contains(t, stdout, `("ECHO")`)
		contains(t, stdout, ", 0 failed, ")
	})
	t.Run("one of two that breaks a rule ends in 1", func(t *testing.T) {
		code, stdout, _ := command(t, t.Context(), "check-agent", good, forgetful)
		if code != 1 || strings.Count(stdout, "FAIL") != 1 {
			t.Errorf("code %d, %s", code, stdout)
		}
		contains(t, stdout, "FAIL  sync-outputs ")
		contains(t, stdout, "outputs is missing or null (Sync response shape)")
	})
	t.Run("as JSON, from the environment", func(t *testing.T) {
		t.Setenv("AGENT_CONTRACT_TARGETS", good+","+forgetful)
		code, stdout, _ := command(t, t.Context(), "check-agent", "--json")
		var reports []check.Report
		if err := json.Unmarshal([]byte(stdout), &reports); err != nil || code != 1 {
			t.Fatalf("code %d, %v", code, err)
		}
		if got := fmt.Sprint(len(reports), reports[0].Failed(), reports[1].Count(check.Fail)); got != "2 false 1" {
			t.Error(got)
		}
	})
}

func TestCheckAgentSendsWhatItIsGiven(t *testing.T) {
	alone(t)
	t.Setenv("AOD_TOKEN", "server's own")
	t.Setenv("AOD_TOKEN_FILE", "token")
	for name, text := range map[string]string{"token": "s3cret\n", "inputs.json": `{"a":1}`, "list.json": `[1]`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, target := serveEcho(t, false)
	t.Run("no token of AOD's own server", func(t *testing.T) {
		if code, _, _ := command(t, t.Context(), "check-agent", target); code != 0 || e.tokens.Load() != 0 {
			t.Errorf("code %d, %d tokens", code, e.tokens.Load())
		}
	})
	t.Run("the agents' token, and the inputs", func(t *testing.T) {
		code, stdout, _ := command(t, t.Context(), "check-agent", target, "--token-file", "token", "--inputs", "inputs.json")
		if code != 0 || e.tokens.Load() == 0 || e.inputs.Load() != 3 || strings.Contains(stdout, "s3cret") {
			t.Errorf("code %d, %d tokens, %d inputs", code, e.tokens.Load(), e.inputs.Load())
		}
	})
	for wrong, says := range map[string]string{
		"http://agent.example.com=X --token-file token": "everybody on the way",
		target + " --token-file nothing":                "no token can be read from the file",
		target + " --inputs list.json":                  `list.json" of --inputs can't be used`,
		target + " --inputs nothing.json":               "can't be read",
		target + " --timeout 0s":                        "--timeout",
	} {
		code, _, stderr := command(t, t.Context(), append([]string{"check-agent"}, strings.Fields(wrong)...)...)
		if code != 2 {
			t.Errorf("%s: code %d", wrong, code)
		}
		contains(t, stderr, says)
	}
}
