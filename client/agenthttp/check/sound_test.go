package check

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
)

func TestAnswersOfOtherStyles(t *testing.T) {
	cases := map[string]func(*agenttest.Agent){
		"ok alone, and a status of its own":  with(map[string]any{"status": "completed", "ok": true}),
		"status success":                     with(map[string]any{"status": "success"}),
		"outputs that are empty":             with(map[string]any{"outputs": map[string]any{}}),
		"a media type with a charset":        func(a *agenttest.Agent) { a.Media = "application/json; charset=utf-8" },
		"data instead of outputs":            finally(map[string]any{"outputs": nil, "data": map[string]any{}}),
		"success instead of ok":              finally(map[string]any{"ok": nil, "status": "done", "success": true}),
		"no health":                          func(a *agenttest.Agent) { a.Health = func(w http.ResponseWriter) { w.WriteHeader(404) } },
		"a refusal that is wrapped":          refusing(404, func(asked agenttest.Asked) any { return map[string]any{"detail": agenttest.Refusal(asked.RequestID)} }),
		"a stream that fails as its refusal": refuseInStream,
		"a refusal with 200":                 refusing200(func(asked agenttest.Asked) any { return agenttest.Refusal(asked.RequestID) }),
		"a refusal by its status alone": refusing200(func(asked agenttest.Asked) any {
			return changed(changed(agenttest.Refusal(asked.RequestID), "ok", nil), "status", "error")
		}),
		"members that are null":      with(map[string]any{"usage": json.RawMessage("null"), "grounding": json.RawMessage("null"), "error": json.RawMessage("null")}),
		"members of its own":         with(map[string]any{"confidence": 1, "grounding": map[string]any{"sources": []any{map[string]any{"id": 1}}, "span_refs": nil}}),
		"outputs that repeat a name": func(a *agenttest.Agent) { a.Body = doubled },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			a := agenttest.Good()
			change(a)
			report := examine(t, a)
			if report.Failed() || !slices.Contains(idsWith(report, Pass), "sync-schema") {
				t.Error(table(t, report))
			}
		})
	}
}

// refuseInStream begins a stream of any task, and ends the unknown ones in a failure.
func refuseInStream(a *agenttest.Agent) {
	a.Knows = func(path, task string) bool { return path == agenthttp.StreamPath || task == agenttest.Task }
	a.Frames = func(asked agenttest.Asked) []string {
		if asked.TaskType == agenttest.Task {
			return agenttest.Frames(asked.RequestID, asked.TaskType)
		}
		return []string{agenttest.Frame("started", agenttest.Refusal(asked.RequestID)), agenttest.Frame("final", agenttest.Terminal(asked.RequestID, asked.TaskType, map[string]any{"status": "error", "ok": false}))}
	}
}

// doubled has a name twice in the outputs: what the task gave is not the contract's.
func doubled(raw []byte) []byte {
	return bytes.Replace(raw, []byte(`"words":3`), []byte(`"words":3,"words":3`), 1)
}

func TestWhatIsOnlyRecommendedIsAdvice(t *testing.T) {
	cases := []struct {
		name   string
		change func(*agenttest.Agent)
		want   []string
	}{
		{"an answer without warnings", with(map[string]any{"warnings": nil}), []string{"sync-warnings"}},
		{"a terminal event without warnings", finally(map[string]any{"warnings": nil}), []string{"stream-terminal-warnings"}},
		{"data without a type", finally(map[string]any{"type": nil}), []string{"stream-data-type"}},
		{"progress with a type of its own", ending(func(id, task string) []string {
			return []string{agenttest.Frame("progress", map[string]any{"type": "tool_call"}), agenttest.Frame("final", agenttest.Terminal(id, task, nil))}
		}), []string{"stream-data-type"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := agenttest.Good()
			c.change(a)
			report := examine(t, a)
			if diff := cmp.Diff(c.want, idsWith(report, Advice)); diff != "" || report.Failed() {
				t.Errorf("%s\n%s", diff, table(t, report))
			}
		})
	}
}
