package a2a

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

// door is a binding of a version as a test uses it.
type door struct {
	name   string
	send   func(w *harness, id, text, more string, wait bool) map[string]any
	get    func(w *harness, run string) map[string]any
	cancel func(w *harness, run string) map[string]any
	stream func(w *harness, text string) []string
}

var doors = []door{
	{
		name: "JSON-RPC 1.0",
		send: func(w *harness, id, text, more string, wait bool) map[string]any {
			result := w.rpc("echo", "SendMessage", fmt.Sprintf(`{"message":%s,"configuration":{"returnImmediately":%t}}`, message(id, text, more), !wait))
			task, _ := result["task"].(map[string]any)
			return task
		},
		get:    func(w *harness, run string) map[string]any { return w.rpc("echo", "GetTask", `{"id":"`+run+`"}`) },
		cancel: func(w *harness, run string) map[string]any { return w.rpc("echo", "CancelTask", `{"id":"`+run+`"}`) },
		stream: func(w *harness, text string) []string {
			return w.streamed("/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":`+message("s", text, "")+`}}`, "result")
		},
	},
	{
		name: "JSON-RPC 0.3",
		send: func(w *harness, id, text, more string, wait bool) map[string]any {
			return w.rpc("echo", "message/send", fmt.Sprintf(`{"message":{"kind":"message","messageId":"%s","role":"user","parts":[{"kind":"text","text":"%s"}]%s},"configuration":{"blocking":%t}}`, id, text, more, wait))
		},
		get:    func(w *harness, run string) map[string]any { return w.rpc("echo", "tasks/get", `{"id":"`+run+`"}`) },
		cancel: func(w *harness, run string) map[string]any { return w.rpc("echo", "tasks/cancel", `{"id":"`+run+`"}`) },
		stream: func(w *harness, text string) []string {
			return w.streamed("/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{"message":{"kind":"message","messageId":"s","role":"user","parts":[{"kind":"text","text":"`+text+`"}]}}}`, "result")
		},
	},
	{
		name: "HTTP+JSON 1.0",
		send: func(w *harness, id, text, more string, wait bool) map[string]any {
			said := w.do("POST", "/a2a/echo/message:send", fmt.Sprintf(`{"message":%s,"configuration":{"returnImmediately":%t}}`, message(id, text, more), !wait))
			task, _ := decode(w.t, said.body)["task"].(map[string]any)
			return task
		},
		get: func(w *harness, run string) map[string]any {
			return decode(w.t, w.do("GET", "/a2a/echo/tasks/"+run, "").body)
		},
		cancel: func(w *harness, run string) map[string]any {
			return decode(w.t, w.do("POST", "/a2a/echo/tasks/"+run+":cancel", "").body)
		},
		stream: func(w *harness, text string) []string {
			return w.streamed("/a2a/echo/message:stream", `{"message":`+message("s", text, "")+`}`)
		},
	},
	{
		name: "HTTP+JSON 0.3",
		send: func(w *harness, id, text, more string, wait bool) map[string]any {
			said := w.do("POST", "/a2a/echo/v1/message:send", fmt.Sprintf(`{"message":{"messageId":"%s","role":"ROLE_USER","content":[{"text":"%s"}]%s},"configuration":{"blocking":%t}}`, id, text, more, wait))
			task, _ := decode(w.t, said.body)["task"].(map[string]any)
			return task
		},
		get: func(w *harness, run string) map[string]any {
			return decode(w.t, w.do("GET", "/a2a/echo/v1/tasks/"+run, "").body)
		},
		cancel: func(w *harness, run string) map[string]any {
			return decode(w.t, w.do("POST", "/a2a/echo/v1/tasks/"+run+":cancel", "").body)
		},
		stream: func(w *harness, text string) []string {
			return w.streamed("/a2a/echo/v1/message:stream", `{"message":{"messageId":"s","role":"ROLE_USER","content":[{"text":"`+text+`"}]}}`)
		},
	},
}

// streamed calls a method that streams, and returns its events.
func (w *harness) streamed(path, body string, within ...any) []string {
	w.t.Helper()
	said := w.do("POST", path, body)
	if kind := said.Header.Get("Content-Type"); kind != "text/event-stream" || said.StatusCode != 200 {
		w.t.Fatalf("%d %s %s", said.StatusCode, kind, said.body)
	}
	var kinds []string
	for _, e := range events(w.t, strings.NewReader(said.body)) {
		value := at(decode(w.t, e), within...)
		kinds = append(kinds, plainKind(value))
	}
	return kinds
}

// plainKind is what an event of a stream is, and its state, in the words of no version.
func plainKind(value any) string {
	for _, key := range []string{"task", "statusUpdate", "artifactUpdate"} {
		if inner := at(value, key); inner != nil {
			return key + " " + plainState(inner)
		}
	}
	kind, _ := at(value, "kind").(string)
	kind = map[string]string{"task": "task", "status-update": "statusUpdate", "artifact-update": "artifactUpdate"}[kind]
	return kind + " " + plainState(value)
}

func plainState(value any) string {
	state, _ := at(value, "status", "state").(string)
	state = strings.TrimPrefix(strings.ToLower(state), "task_state_")
	return strings.ReplaceAll(strings.ReplaceAll(state, "cancelled", "canceled"), "-", "_")
}

// seen is what of a task is the same in every binding and version.
type seen struct {
	ID, Context, State, Timestamp, Text string
	History, Artifacts                  int
}

func seenOf(task map[string]any) seen {
	count := func(keys ...string) int {
		for _, key := range keys {
			if list, ok := task[key].([]any); ok {
				return len(list)
			}
		}
		return 0
	}
	s := seen{State: plainState(task), History: count("history"), Artifacts: count("artifacts")}
	s.ID, _ = task["id"].(string)
	s.Context, _ = task["contextId"].(string)
	s.Timestamp, _ = at(task, "status", "timestamp").(string)
	s.Text, _ = at(task, "artifacts", 0, "parts", 0, "text").(string)
	return s
}

func TestEveryBindingAndVersionShowsTheSameTask(t *testing.T) {
	w := newHarness(t, nil)
	var first seen
	for i, d := range doors {
		sent := seenOf(d.send(w, "m"+d.name, "hi", "", true))
		if sent.State != "completed" || sent.Text != `{"message":"hi"}` || sent.Context == "" || sent.History != 1 || sent.Artifacts != 1 {
			t.Errorf("%s: %+v", d.name, sent)
		}
		if i == 0 {
			first = sent
		}
		if got := seenOf(d.get(w, first.ID)); !cmp.Equal(got, first) {
			t.Errorf("%s: %s", d.name, cmp.Diff(first, got))
		}
	}
	if want := "2026-01-02T03:04:08.678Z"; first.Timestamp != want {
		t.Errorf("changed at %s, want %s", first.Timestamp, want)
	}
}

func TestStreamsTellTheSameInEveryBinding(t *testing.T) {
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			w := newHarness(t, nil)
			if got := d.stream(w, "quick"); !cmp.Equal(got, []string{"task completed"}) {
				t.Errorf("of a task that has ended: %v", got)
			}
			w.hold = true
			go func() {
				if w.awaitRuns(2) {
					w.last(func(r *fakeRun) {
						w.tell(r, api.ArtifactEvent{ID: "a", Parts: []api.Part{{Text: "one"}}})
						w.tell(r, api.ProgressEvent{Message: "half"})
						w.tell(r, api.ArtifactEvent{ID: "a", Parts: []api.Part{{Text: "two"}}, Append: true, Last: true})
						w.succeed(r, "done")
					})
				}
			}()
			got := d.stream(w, "slow")
			if len(got) == 0 || got[0] != "task working" && got[0] != "task completed" {
				t.Fatalf("%v", got)
			}
			if got[0] == "task working" && got[len(got)-1] != "statusUpdate completed" {
				t.Errorf("%v", got)
			}
		})
	}
}

// awaitRuns waits until there are so many runs.
func (w *harness) awaitRuns(n int) bool { return w.await(func() bool { return len(w.runs) >= n }) }

// await waits until something is so, and returns false if the test ends before.
func (w *harness) await(is func() bool) bool {
	for {
		w.mu.Lock()
		news, so := w.news, is()
		w.mu.Unlock()
		if so {
			return true
		}
		select {
		case <-news:
		case <-trusted.Context(w.t).Done():
			return false
		}
	}
}

func TestWhoDoesNotWaitGetsATaskAtOnce(t *testing.T) {
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			w := newHarness(t, nil)
			w.hold = true
			task := seenOf(d.send(w, "m", "hi", "", false))
			if task.State != "working" {
				t.Errorf("%+v", task)
			}
			if got := seenOf(d.cancel(w, task.ID)); got.State != "canceled" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestVersion03WaitsOnlyIfAsked(t *testing.T) {
	w := newHarness(t, nil)
	w.hold = true
	for _, config := range []string{"", `,"configuration":{}`, `,"configuration":{"historyLength":1}`} {
		task := w.rpc("echo", "message/send", `{"message":{"kind":"message","messageId":"`+config2id(config)+`","role":"user","parts":[{"kind":"text","text":"x"}]}`+config+`}`)
		if plainState(task) != "working" {
			t.Errorf("%q: %v", config, task)
		}
		said := w.do("POST", "/a2a/echo/v1/message:send", `{"message":{"messageId":"r`+config2id(config)+`","role":"ROLE_USER","content":[{"text":"x"}]}`+config+`}`)
		if plainState(decode(t, said.body)["task"]) != "working" {
			t.Errorf("%q: %s", config, said.body)
		}
	}
}

func config2id(config string) string { return fmt.Sprintf("m%d", len(config)) }

func TestTheVersionIsThatOfTheHeaderAndTheMethod(t *testing.T) {
	w := newHarness(t, nil)
	for _, c := range []struct {
		header, method string
		good           bool
	}{
		{"", "GetTask", true},
		{"", "tasks/get", true},
		{"1.0", "GetTask", true},
		{"1.0.1", "GetTask", true},
		{"1.0", "tasks/get", false},
		{"0.3", "tasks/get", true},
		{"0.3.0", "tasks/get", true},
		{"0.3", "GetTask", false},
		{"0.3", "ListTasks", false},
	} {
		said := w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"`+c.method+`","params":{"id":"`+unknownRun+`"}}`, "A2A-Version: "+c.header)
		want := float64(-32601)
		if c.good {
			want = -32001
		}
		if got := at(decode(t, said.body), "error", "code"); got != want {
			t.Errorf("%s with %q: %v, want %v", c.method, c.header, got, want)
		}
	}
	for _, version := range []string{"2.0", "1.00", "1.0.", "1.0.x", "10", "0.3.1234567890123"} {
		said := w.do("GET", "/a2a/echo/tasks?A2A-Version="+version, "")
		if at(decode(t, said.body), "error", "details", 0, "reason") != "VERSION_NOT_SUPPORTED" {
			t.Errorf("%s: %s", version, said.body)
		}
	}
}
