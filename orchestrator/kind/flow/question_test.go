package flow

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

func TestAQuestionOfANode(t *testing.T) {
	b := newBench(t, oneCall)
	until := time.Now().Add(time.Hour)
	q := flow.Question{
		Address: "a#2", Text: "Go?", Form: json.RawMessage(`{"type":"object"}`), Answers: []string{"yes", "no"}, Until: until, Alone: true,
		Show: map[string]any{"$n": int64(1), "doc": flow.File{Name: "d", SizeBytes: 1, SHA256: digestOf("d")}},
	}
	b.host.answer = func(run.Question) (run.Answer, error) {
		return run.Answer{Action: "yes", Form: map[string]any{"why": "so"}, By: "ada", Note: "n", At: until}, nil
	}
	h := b.newHost()
	got, err := h.Ask(t.Context(), q)
	if diff := cmp.Diff(flow.Answer{Action: "yes", Form: map[string]any{"why": "so"}, By: "ada", Note: "n", At: until}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	q.Show = nil
	if _, err := h.Ask(t.Context(), q); err != nil {
		t.Error(err)
	}
	want := run.Question{Address: "a#2", Text: "Go?", Form: q.Form, Answers: q.Answers, Until: until, Alone: true}
	shown := want
	shown.Show = json.RawMessage(`{"$$n":1,"doc":{"$file":{"name":"d","sha256":"` + digestOf("d") + `","size_bytes":1}}}`)
	if diff := cmp.Diff([]run.Question{shown, want}, b.host.asked); diff != "" {
		t.Error(diff)
	}
}

func TestAQuestionWithoutAnAnswer(t *testing.T) {
	b := newBench(t, oneCall)
	b.host.answer = func(run.Question) (run.Answer, error) {
		return run.Answer{}, &run.Denied{Reason: "nobody is there", Hint: "use a server"}
	}
	_, err := b.newHost().Ask(t.Context(), flow.Question{Address: "a"})
	var denied *flow.CallError
	want := &flow.CallError{Refused: true, Failure: flow.Failure{Node: "a", Category: permanent, Kind: "unanswered", Message: "nobody is there", Hint: "use a server"}}
	if errors.As(err, &denied); cmp.Diff(want, denied) != "" {
		t.Errorf("%+v", denied)
	}
	b.host.answer = func(run.Question) (run.Answer, error) { return run.Answer{}, runtime.ErrDetach }
	if _, err := b.newHost().Ask(t.Context(), flow.Question{}); !errors.Is(err, runtime.ErrDetach) {
		t.Errorf("%v", err)
	}
	if _, err := b.newHost().Ask(t.Context(), flow.Question{Show: map[string]any{"x": make(chan int)}}); err == nil || len(b.host.asked) != 2 {
		t.Errorf("%v, asked %d times", err, len(b.host.asked))
	}
}

func TestTheItemsOfAMapAreTold(t *testing.T) {
	b := newBench(t, oneCall)
	b.newHost().Items("read", 3)
	want := api.NodeEvent{Address: "read", Try: 1, State: api.OpenStep, Items: 3}
	if len(b.host.told) != 1 || cmp.Diff(want, b.host.told[0].Data) != "" {
		t.Errorf("told %+v", b.host.told)
	}
}
