package flow

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatARehearsalGives(t *testing.T) {
	text := func(s string) Played { return Played{Output: map[string]any{"text": s}} }
	r := &Rehearsal{
		Nodes: map[string][]Played{
			"draft": {text("one"), text("two")}, "read/texts": {text("a"), text("b"), {Failure: &Failure{Kind: "timeout", Message: "late"}}},
		},
		Answers: map[string][]Answer{"approve": {{Action: "approve"}}, "other": {{Action: "perhaps"}}},
	}
	walked := &Walked{}
	h := r.Host(deaf{}, walked)
	for address, want := range map[string]string{
		"draft": "one", "draft#2": "two", "draft#3": "two", "read/texts[0]": "a", "read#7/texts[1]": "b", "read/texts[2]": "late", "read/texts[9]": "late", "elsewhere": "deaf",
	} {
		got, err := h.Call(t.Context(), Call{Address: address})
		said := ""
		if err != nil {
			said = err.Error()
		} else {
			said, _ = got.Output.(map[string]any)["text"].(string)
		}
		if said != want {
			t.Errorf("%s gives %q, want %q", address, said, want)
		}
	}
	if got, err := h.Ask(t.Context(), Question{Address: "approve#4", Answers: []string{"approve"}}); err != nil || got.Action != "approve" {
		t.Errorf("%+v, %v", got, err)
	}
	var refused *CallError
	if _, err := h.Ask(t.Context(), Question{Address: "other", Answers: []string{"approve"}}); !errors.As(err, &refused) || !refused.Refused {
		t.Errorf("an answer that isn't one of the question's: %v", err)
	}
	for _, s := range []Step{
		{Address: "draft", State: Done, Action: Default},
		{Address: "review", State: Open},
		{Address: "review", State: Failed},
		{Address: "review", Try: 2, State: Done, Action: "again"},
		{Address: "read/texts[0]", State: Done, Action: Default},
		{Address: "draft#2", State: Skipped, Action: Default},
	} {
		if err := h.Keep(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"draft", "review", "draft"}, walked.Path()); diff != "" {
		t.Error(diff)
	}
}

// deaf is a host that gives nothing.
type deaf struct{ Host }

func (deaf) Call(context.Context, Call) (Result, error) {
	return Result{}, &CallError{Failure: Failure{Message: "deaf"}}
}
func (deaf) Keep(context.Context, Step) error { return nil }
