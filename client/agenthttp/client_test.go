package agenthttp

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

var asked = Request{RequestID: "r-1", TaskType: agenttest.Task, Inputs: Object(`{"text":"a b"}`)}

func newClient(t *testing.T, opts Options) *Client {
	t.Helper()
	c, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// against returns a client of an agent that does just that.
func against(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	c := newClient(t, Options{URL: agenttest.Serve(t, h)})
	return c
}

// events is an agent that streams this and ends.
func events(frames ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, f := range frames {
			_, _ = io.WriteString(w, f)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func TestRun(t *testing.T) {
	c := newClient(t, Options{URL: agenttest.Serve(t, agenttest.Good())})
	got, err := c.Run(t.Context(), asked)
	want := Response{RequestID: "r-1", Status: "ok", OK: true, Outputs: Object(`{"words":3}`), Artifacts: []string{"https://agent.example.com/1"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestRunTakesWhatIsRecommended(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"request_id":"r-1","ok":true,"status":null,"outputs":{"n":1.0},"artifacts":["https://a/b",{"name":"a"}],"artifact_details":[{"size":1}],`+
			`"provenance":{"model":null},"usage":[1],"warnings":["w",{"code":1}],"more":true}`)
	})
	got, err := c.Run(t.Context(), asked)
	want := Response{
		RequestID: "r-1", OK: true, Outputs: Object(`{"n":1.0}`), Artifacts: []string{"https://a/b"},
		ArtifactDetails: []json.RawMessage{json.RawMessage(`{"name":"a"}`), json.RawMessage(`{"size":1}`)},
		Provenance:      Object(`{"model":null}`), Warnings: []string{"w", `{"code":1}`},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestStream(t *testing.T) {
	c := newClient(t, Options{URL: agenttest.Serve(t, agenttest.Good())})
	var types []EventType
	got, err := c.Stream(t.Context(), asked, func(e Event) { types = append(types, e.Type) })
	want := Response{Type: Final, RequestID: "r-1", TaskType: agenttest.Task, Status: "ok", OK: true, Outputs: Object(`{"words":3}`)}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if diff := cmp.Diff([]EventType{Started, Progress}, types); diff != "" {
		t.Error(diff)
	}
}

func TestATerminalEventWithoutATaskTypeIsRead(t *testing.T) {
	for _, task := range []any{nil, ""} {
		data := agenttest.Terminal("r-1", agenttest.Task, map[string]any{"task_type": nil})
		if task != nil {
			data["task_type"] = task
		}
		got, err := against(t, events(agenttest.Frame("final", data))).Stream(t.Context(), asked, func(Event) {})
		if err != nil || !got.OK || string(got.Outputs) != `{"words":3}` {
			t.Errorf("%v: %+v %v", task, got, err)
		}
	}
}

func TestStreamHandsEventsOnAsTheyCome(t *testing.T) {
	seen := make(chan struct{})
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		events(agenttest.Frame("progress", map[string]any{"percent": 1}))(w, r)
		<-seen // before that there is no more
		_, _ = io.WriteString(w, agenttest.Frame("final", agenttest.Terminal("r-1", agenttest.Task, nil)))
	})
	if _, err := c.Stream(t.Context(), asked, func(Event) { close(seen) }); err != nil {
		t.Error(err)
	}
}

func TestTheTypeOfAnEvent(t *testing.T) {
	cases := []struct {
		name, sse, data string
		want            EventType
	}{
		{"by the name", "final", `{}`, Final},
		{"the name before the data", "progress", `{"type":"final","step":"complete"}`, Progress},
		{"an unknown name before the data", "log", `{"type":"done"}`, "log"},
		{"by type", "message", `{"type":"complete"}`, Complete},
		{"by event", "message", `{"event":"done"}`, Done},
		{"type before event", "message", `{"type":"progress","event":"complete"}`, Progress},
		{"the one that is known", "message", `{"type":"result","event":"final"}`, Final},
		{"nulls are absent", "message", `{"type":null,"event":"final"}`, Final},
		{"a step isn't a type", "message", `{"step":"complete"}`, ""},
		{"a text isn't a type", "message", `"final"`, ""},
		{"nor is a number", "message", `{"type":1}`, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e, err := eventOf(httpwire.Event{Name: c.sse, Data: c.data})
			if err != nil || e.Type != c.want {
				t.Errorf("%q %v", e.Type, err)
			}
		})
	}
}

func TestAFailureOfTheAgentIsAnOutcome(t *testing.T) {
	failed := map[string]any{"request_id": "r-1", "status": "error", "warnings": []string{"w"}}
	sync := against(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Reply(w, 200, failed) })
	if got, err := sync.Run(t.Context(), asked); err != nil || got.OK || got.Status != "error" || len(got.Warnings) != 1 {
		t.Errorf("%+v %v", got, err)
	}
	stream := against(t, events(agenttest.Frame("final", failed)))
	if got, err := stream.Stream(t.Context(), asked, func(Event) {}); err != nil || got.OK || got.Status != "error" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestAConnectionThatBreaksAfterTheTerminalEventIsNoMatter(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		events(agenttest.Frame("final", agenttest.Terminal("r-1", agenttest.Task, nil)))(w, r)
		cut(w, r)
	})
	if got, err := c.Stream(t.Context(), asked, func(Event) {}); err != nil || !got.OK {
		t.Errorf("%+v %v", got, err)
	}
}

func TestNothingIsSentThatBreaksTheContract(t *testing.T) {
	var calls atomic.Int32
	c := against(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	for _, r := range []Request{
		{},
		{RequestID: "r"},
		{TaskType: "t"},
		{RequestID: "r", TaskType: "t", Inputs: Object("[]")},
		{RequestID: "r", TaskType: "t", Budgets: Object("{")},
		{RequestID: strings.Repeat("r", MaxIDBytes+1), TaskType: "t"},
	} {
		if _, err := c.Run(t.Context(), r); !fault.Is(err, fault.Input) || len(fault.Public(err).Findings) == 0 {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if calls.Load() > 0 {
		t.Error("the agent was called")
	}
}
