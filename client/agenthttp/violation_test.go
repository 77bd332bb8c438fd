package agenthttp

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
)

func TestStreamsThatBreakTheContract(t *testing.T) {
	good := agenttest.Frame("final", agenttest.Terminal("r-1", agenttest.Task, nil))
	beat := agenttest.Frame("progress", map[string]any{"step": "complete"})
	cases := []struct {
		name   string
		frames []string
		rule   string
	}{
		{"nothing at all", nil, "stream-terminal"},
		{"no terminal event", []string{beat}, "stream-terminal"},
		{"a terminal event without its empty line", []string{strings.TrimSuffix(good, "\n")}, "stream-terminal"},
		// What follows a terminal event is sent with it: it is awaited for lingerTime only.
		{"two terminal events", []string{good + good}, "stream-single-terminal"},
		{"an event after the terminal one", []string{good + beat}, "stream-terminal-last"},
		{"data that isn't JSON", []string{"event: progress\ndata: {\n\n", good}, "stream-json"},
		{"a terminal event that isn't an object", []string{"event: done\ndata: [DONE]\n\n"}, "stream-json"},
		{"a terminal event that is a list", []string{"event: done\ndata: []\n\n"}, "stream-json"},
		{"another request_id", []string{agenttest.Frame("final", agenttest.Terminal("r-2", agenttest.Task, nil))}, "stream-terminal-request-id"},
		{"another task_type", []string{agenttest.Frame("final", agenttest.Terminal("r-1", agenttest.Task, map[string]any{"task_type": "OTHER"}))}, "stream-terminal-task-type"},
		{"no status", []string{agenttest.Frame("final", agenttest.Terminal("r-1", agenttest.Task, map[string]any{"status": nil}))}, "stream-terminal-status"},
		{"no outputs", []string{agenttest.Frame("final", agenttest.Terminal("r-1", agenttest.Task, map[string]any{"outputs": nil}))}, "stream-terminal-outputs"},
		{"no word of success", []string{agenttest.Frame("final", map[string]any{"request_id": "r-1", "task_type": agenttest.Task, "outputs": map[string]any{}, "status": 1})}, "stream-terminal-status"},
		{"a contradiction", []string{agenttest.Frame("final", agenttest.Terminal("r-1", agenttest.Task, map[string]any{"ok": false}))}, "stream-terminal-success"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := against(t, events(c.frames...)).Stream(t.Context(), asked, func(Event) {})
			wantViolation(t, err, c.rule)
		})
	}
}

func wantViolation(t *testing.T, err error, rule string) {
	t.Helper()
	var v *Violation
	if !errors.As(err, &v) || v.Rule != rule || !fault.Is(err, fault.Unsupported) {
		t.Errorf("%v, want the rule %s", err, rule)
	}
}

func TestAnswersThatBreakTheContract(t *testing.T) {
	for body, rule := range map[string]string{
		`<html>`: "sync-json",
		``:       "sync-json",
		`{"request_id":"r-1","ok":true,"outputs":{}} x`:                           "sync-json",
		"{\"request_id\":\"r-1\",\"ok\":true,\"outputs\":{\"a\":\"\xff\"}}":       "sync-json",
		`{"request_id":"r-1","ok":true,"outputs":{"a":` + strings.Repeat("[", 64): "sync-json",
		`{"request_id":"r-2","ok":true,"outputs":{}}`:                             "sync-request-id",
		`{"Request_ID":"r-1","ok":true,"outputs":{}}`:                             "sync-request-id",
		`{"request_id":"r-1","outputs":{}}`:                                       "sync-success",
		`{"request_id":"r-1","ok":1,"outputs":{}}`:                                "sync-success",
		`{"request_id":"r-1","status":"ok","ok":false,"outputs":{}}`:              "sync-success",
		`{"request_id":"r-1","ok":true,"outputs":null}`:                           "sync-outputs",
	} {
		_, err := against(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }).Run(t.Context(), asked)
		wantViolation(t, err, rule)
	}
}

func TestAStreamOfAnotherTypeIsNone(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, _ *http.Request) {
		agenttest.Reply(w, 200, agenttest.Success(agenttest.Asked{RequestID: "r-1"}))
	})
	_, err := c.Stream(t.Context(), asked, func(Event) {})
	wantViolation(t, err, "stream-content-type")
}
