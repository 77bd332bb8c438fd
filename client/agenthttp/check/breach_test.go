package check

import (
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
)

// breach is an agent that breaks one rule.
type breach struct {
	rule   string
	name   string
	breaks func(a *agenttest.Agent)
}

// with changes members of the good sync answer; nil removes.
func with(changes map[string]any) func(*agenttest.Agent) {
	return func(a *agenttest.Agent) {
		a.Answer = func(asked agenttest.Asked) map[string]any {
			document := agenttest.Success(asked)
			maps.Copy(document, changes)
			maps.DeleteFunc(document, func(_ string, v any) bool { return v == nil })
			return document
		}
	}
}

// ending replaces the terminal event by others.
func ending(frames func(id, task string) []string) func(*agenttest.Agent) {
	return func(a *agenttest.Agent) {
		a.Frames = func(asked agenttest.Asked) []string {
			return append(agenttest.Frames(asked.RequestID, asked.TaskType)[:3], frames(asked.RequestID, asked.TaskType)...)
		}
	}
}

// finally changes members of the terminal event; nil removes.
func finally(changes map[string]any) func(*agenttest.Agent) {
	return ending(func(id, task string) []string {
		return []string{agenttest.Frame("final", agenttest.Terminal(id, task, changes))}
	})
}

// changed changes a member of a document.
func changed(document map[string]any, name string, value any) map[string]any {
	document[name] = value
	return document
}

// refusing200 refuses with 2xx: in an answer, and at the end of a stream.
func refusing200(document func(asked agenttest.Asked) any) func(*agenttest.Agent) {
	return func(a *agenttest.Agent) {
		refuseInStream(a)
		refusing(http.StatusOK, document)(a)
	}
}

func refusing(status int, document func(asked agenttest.Asked) any) func(*agenttest.Agent) {
	return func(a *agenttest.Agent) {
		a.Refuse = func(w http.ResponseWriter, asked agenttest.Asked) { agenttest.Reply(w, status, document(asked)) }
	}
}

var breaches = []breach{
	{"health", "health isn't JSON", func(a *agenttest.Agent) {
		a.Health = func(w http.ResponseWriter) { _, _ = io.WriteString(w, "fine") }
	}},
	{"health", "health fails", func(a *agenttest.Agent) { a.Health = func(w http.ResponseWriter) { w.WriteHeader(500) } }},
	{"sync-content-type", "the sync answer is declared as text", func(a *agenttest.Agent) { a.Media = "text/plain" }},
	{"sync-json", "the sync answer is a list", func(a *agenttest.Agent) { a.Body = func(raw []byte) []byte { return []byte("[" + string(raw) + "]") } }},
	{"sync-request-id", "request_id is another", with(map[string]any{"request_id": "another"})},
	{"sync-request-id", "request_id is missing", with(map[string]any{"request_id": nil})},
	{"sync-success", "neither status nor ok", with(map[string]any{"status": nil})},
	{"sync-success", "ok is the text true", with(map[string]any{"status": nil, "ok": "true"})},
	{"sync-success", "ok denies the status", with(map[string]any{"ok": false})},
	{"sync-outputs", "outputs is null", func(a *agenttest.Agent) {
		a.Answer = func(asked agenttest.Asked) map[string]any {
			return map[string]any{"request_id": asked.RequestID, "ok": true, "outputs": nil}
		}
	}},
	{"sync-outputs", "outputs is a list", with(map[string]any{"outputs": []int{1}})},
	{"sync-success", "its status is degraded", with(map[string]any{"status": "degraded"})},
	{"sync-artifacts", "artifacts are objects", with(map[string]any{"artifacts": []any{map[string]any{"url": "https://a"}}})},
	{"sync-artifacts", "artifacts is one text", with(map[string]any{"artifacts": "https://a"})},
	{"sync-warnings", "warnings is a text", with(map[string]any{"warnings": "careful"})},
	{"sync-warnings", "a warning is an object", with(map[string]any{"warnings": []any{map[string]any{"code": 1}}})},
	{"sync-schema", "usage is a number", with(map[string]any{"usage": 7})},
	{"sync-schema", "task_type is a list", with(map[string]any{"task_type": []string{"a"}})},
	{"sync-schema", "ok is a text beside a good status", with(map[string]any{"ok": "true"})},
	{"sync-schema", "citations are objects", with(map[string]any{"grounding": map[string]any{"citations": []any{map[string]any{}}}})},
	{"sync-schema", "details of artifacts are texts", with(map[string]any{"artifact_details": []string{"a"}})},
	{"sync-unsupported-schema", "the error of a refusal is a text", refusing(422, func(asked agenttest.Asked) any {
		return changed(agenttest.Refusal(asked.RequestID), "error", "unknown")
	})},
	{"sync-unsupported-schema", "the error of a refusal with 200 has no code", refusing200(func(asked agenttest.Asked) any {
		return changed(agenttest.Refusal(asked.RequestID), "error", map[string]any{"message": "unknown"})
	})},
	{"sync-unsupported-body", "a refusal with 200 has no outputs", refusing200(func(asked agenttest.Asked) any {
		return changed(agenttest.Refusal(asked.RequestID), "outputs", nil)
	})},
	{"sync-optional-fields", "user_id is required", func(a *agenttest.Agent) {
		complete := a.Accepts
		a.Accepts = func(path string, f document.Fields) bool {
			return complete(path, f) && (path != agenthttp.SyncPath || f.Has("user_id") || f.Text("task_type") != agenttest.Task)
		}
	}},
	{"sync-request-id-required", "request_id may be missing", func(a *agenttest.Agent) {
		a.Accepts = func(path string, f document.Fields) bool {
			return f.Has("task_type") && (path == agenthttp.SyncPath || f.Has("request_id"))
		}
	}},
	{"sync-task-type-required", "task_type may be missing", func(a *agenttest.Agent) {
		a.Accepts = func(_ string, f document.Fields) bool { return f.Has("request_id") }
		a.Knows = func(_, task string) bool { return task == "" || task == agenttest.Task }
	}},
	{"sync-unsupported-status", "an unknown task succeeds", func(a *agenttest.Agent) {
		a.Knows = func(path, task string) bool { return path == agenthttp.SyncPath || task == agenttest.Task }
	}},
	{"sync-unsupported-body", "a refusal has a body of its own", func(a *agenttest.Agent) {
		a.Refuse = func(w http.ResponseWriter, _ agenttest.Asked) {
			agenttest.Reply(w, 422, map[string]any{"detail": "unknown"})
		}
	}},
	{"sync-unsupported-body", "a refusal has no warnings", refusing(422, func(asked agenttest.Asked) any {
		return map[string]any{"request_id": asked.RequestID, "ok": false, "outputs": map[string]any{}}
	})},
	{"sync-unsupported-body", "a refusal doesn't say ok false", refusing(422, func(asked agenttest.Asked) any {
		return map[string]any{"request_id": asked.RequestID, "status": "error", "outputs": map[string]any{}, "warnings": []string{}}
	})},
	{"refusal-no-payload", "a refusal shows the inputs", refusing(422, func(asked agenttest.Asked) any {
		return map[string]any{"request_id": asked.RequestID, "ok": false, "outputs": map[string]any{}, "warnings": []any{string(asked.Inputs)}}
	})},
	{"refusal-no-payload", "a refusal with 200 shows the inputs", refusing200(func(asked agenttest.Asked) any {
		return changed(agenttest.Refusal(asked.RequestID), "warnings", []string{string(asked.Inputs)})
	})},
	{"refusal-no-payload", "a stream that refuses shows the inputs", func(a *agenttest.Agent) {
		refuseInStream(a)
		frames := a.Frames
		a.Frames = func(asked agenttest.Asked) []string {
			if asked.TaskType == agenttest.Task {
				return frames(asked)
			}
			last := agenttest.Terminal(asked.RequestID, asked.TaskType, map[string]any{"status": "error", "ok": false})
			return []string{agenttest.Frame("final", changed(last, "error", map[string]any{"code": "X", "message": string(asked.Inputs)}))}
		}
	}},
	{"stream-content-type", "the stream is declared as JSON", func(a *agenttest.Agent) { a.StreamMedia = "application/json" }},
	{"stream-framing", "the empty line after a comment's event is missing", ending(func(id, task string) []string {
		return []string{agenttest.Frame("final", agenttest.Terminal(id, task, nil)), "event: progress\ndata: {}\n"}
	})},
	{"stream-event-type", "the type is in the data alone", ending(func(id, task string) []string {
		return []string{agenttest.Frame("", map[string]any{"type": "progress"}), agenttest.Frame("final", agenttest.Terminal(id, task, nil))}
	})},
	{"stream-json", "the data of a progress event is text", ending(func(id, task string) []string {
		return []string{"event: progress\ndata: halfway\n\n", agenttest.Frame("final", agenttest.Terminal(id, task, nil))}
	})},
	{"stream-data-type", "the data says another type", ending(func(id, task string) []string {
		return []string{agenttest.Frame("progress", map[string]any{"type": "final"}), agenttest.Frame("final", agenttest.Terminal(id, task, nil))}
	})},
	{"stream-data-type", "the terminal event has a type of its own", finally(map[string]any{"type": "result"})},
	{"stream-terminal-artifacts", "artifacts of the terminal event are numbers", finally(map[string]any{"artifacts": []int{1}})},
	{"stream-terminal-warnings", "warnings of the terminal event are an object", finally(map[string]any{"warnings": map[string]any{}})},
	{"stream-terminal-schema", "provenance of the terminal event is a text", finally(map[string]any{"provenance": "me"})},
	{"stream-unbuffered", "all events come at the end", func(a *agenttest.Agent) { a.Kept = true }},
	{"stream-started", "started has another request_id", func(a *agenttest.Agent) {
		a.Frames = func(asked agenttest.Asked) []string {
			frames := agenttest.Frames(asked.RequestID, asked.TaskType)
			frames[0] = agenttest.Frame("started", map[string]any{"request_id": "another"})
			return frames
		}
	}},
	{"stream-terminal", "the stream just ends", ending(func(string, string) []string { return nil })},
	{"stream-single-terminal", "there are two terminal events", ending(func(id, task string) []string {
		return []string{agenttest.Frame("final", agenttest.Terminal(id, task, nil)), agenttest.Frame("complete", agenttest.Terminal(id, task, map[string]any{"type": "complete"}))}
	})},
	{"stream-terminal-last", "progress follows the terminal event", ending(func(id, task string) []string {
		return []string{agenttest.Frame("done", agenttest.Terminal(id, task, map[string]any{"type": "done"})), agenttest.Frame("progress", map[string]any{"percent": 100})}
	})},
	{"stream-terminal-request-id", "the terminal event has no request_id", finally(map[string]any{"request_id": nil})},
	{"stream-terminal-task-type", "the terminal event has no task_type", finally(map[string]any{"task_type": nil})},
	{"stream-terminal-status", "the terminal event has no status", finally(map[string]any{"status": nil})},
	{"stream-terminal-success", "the terminal event contradicts itself", finally(map[string]any{"success": false})},
	{"stream-terminal-outputs", "the terminal event has neither outputs nor data", finally(map[string]any{"outputs": nil})},
	{"stream-request-id-required", "a stream without request_id begins", func(a *agenttest.Agent) {
		a.Accepts = func(path string, f document.Fields) bool {
			return f.Has("task_type") && (path == agenthttp.StreamPath || f.Has("request_id"))
		}
	}},
	{"stream-unsupported", "a stream of an unknown task succeeds", func(a *agenttest.Agent) {
		a.Knows = func(path, task string) bool { return path == agenthttp.StreamPath || task == agenttest.Task }
	}},
}

func (b breach) String() string { return fmt.Sprintf("%s: %s", b.rule, b.name) }
