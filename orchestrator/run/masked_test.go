package run

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
)

type notes struct {
	Host
	events []Event
}

func (n *notes) Note(event Event) { n.events = append(n.events, event) }

func (n *notes) Save(api.Transition) error { return nil }

const secret = "sk-abcdefghijklmnop"

// maskedRun is a run whose texts are masked. Both who observes it and its host get them.
func maskedRun(t *testing.T) (r *Run, host *notes, seen *[]Event) {
	host, seen = &notes{}, &[]Event{}
	r = &Run{Masking: unit.MaskTexts, Unit: &unit.Unit{}, Record: api.Record{State: api.Running}}
	r.LedBy(host, func(e Event) { *seen = append(*seen, e) })
	return r, host, seen
}

func TestEventsAreMasked(t *testing.T) {
	r, host, seen := maskedRun(t)
	progress := &handoff.Progress{Step: secret, Message: secret}
	r.Tell(Event{Progress: progress})
	r.Warn("it said %s", secret)
	for _, events := range [][]Event{host.events, *seen} {
		if p := events[0].Progress; p.Step != "****mnop" || p.Message != "****mnop" || events[1].Warning != "it said ****mnop" {
			t.Errorf("%+v %+v", p, events[1])
		}
	}
	if progress.Step != secret || r.Record.Warnings[0] != "it said ****mnop" {
		t.Errorf("%v %v", progress, r.Record.Warnings)
	}
}

func TestQuestionsAreMasked(t *testing.T) {
	r, _, _ := maskedRun(t)
	q := r.MaskedQuestion(Question{Text: "use " + secret + "?", Show: []byte(`{"a":"` + secret + `"}`)})
	if q.Text != "use ****mnop?" || string(q.Show) != `{"a":"****mnop"}` {
		t.Errorf("%+v", q)
	}
}

func TestAReasonIsMasked(t *testing.T) {
	r, _, seen := maskedRun(t)
	if err := r.End(Stopped(nil, Cancelled("because of "+secret))); err != nil {
		t.Fatal(err)
	}
	const want = "the run was cancelled: because of ****mnop"
	if got := (*seen)[0].State.Reason; got != want || r.Record.Error.Message != want {
		t.Errorf("%q, %q", got, r.Record.Error.Message)
	}
}

// What an earlier process kept is known, so that a PEM block goes on; and what is held back of a
// line that was cut comes at the end.
func TestALogGoesOn(t *testing.T) {
	r, host, _ := maskedRun(t)
	r.LogAgain(runtime.LogLine{Stream: "stderr", Text: "-----BEGIN KEY-----"})
	r.Log(runtime.LogLine{Stream: "stderr", Text: "MIIB"})
	r.Log(runtime.LogLine{Stream: "stdout", Text: "-----END KEY-----"})
	r.Log(runtime.LogLine{Stream: "stderr", Text: "-----END KEY-----"})
	r.Log(runtime.LogLine{Stream: "stderr", Text: "cut sk-abcdef", Cut: true})
	r.EndLog()
	var got []string
	for _, event := range host.events {
		got = append(got, event.Log.Text)
	}
	want := []string{"", "-----END KEY-----", "", "", "cut sk-abcdef"}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d: %q, want %q", i, got[i], want[i])
		}
	}
}

// keepNotes is a host that has what was kept of a session.
type keepNotes struct {
	notes
	told []api.AgentEvent
}

func (k *keepNotes) KeepSession(_ json.RawMessage, told []api.AgentEvent) error {
	k.told = append(k.told, told...)
	return nil
}

func (k *keepNotes) KeepTurn(_ json.RawMessage, told []api.AgentEvent) {
	k.told = append(k.told, told...)
}

func text(text string) api.AgentEvent { return api.AgentEvent{Kind: api.AgentText, Text: text} }

// told is all that was told of a kind.
func told(events []api.AgentEvent, kind string) (all string) {
	for _, e := range events {
		if e.Kind == kind {
			all += e.Text
		}
	}
	return all
}

// A secret in two events is none in each. Another process takes over between any two of them.
func TestWhatASessionTellsIsMaskedAcrossEvents(t *testing.T) {
	events := []api.AgentEvent{
		text("the key is sk-abcdefg"), text("hijklmn"), text("op, and"),
		{Kind: api.AgentThought, Text: "pass"},
		{Kind: api.AgentThought, Text: "word: hunter"},
		{Kind: api.AgentThought, Text: "2 it is"},
		{Kind: "tool", Text: "use " + secret, ID: secret, ToolNews: api.ToolNews{Arguments: `{"a":"` + secret + `","password":"hunter2"}`}},
		text("-----BEGIN KEY-----\nMIIB"),
		{Kind: "tool"},
		text("abc=\n-----END KEY-----\n"), text("the end"),
	}
	for dies := range len(events) + 1 {
		host := &keepNotes{}
		r := &Run{Masking: unit.MaskTexts, Session: &Session{}}
		r.LedBy(host, nil)
		for i, e := range events {
			if i == dies {
				r = &Run{Masking: unit.MaskTexts, Session: &Session{}}
				r.LedBy(host, nil)
				r.ToldAgain(events[:i]...)
			}
			if err := r.KeepSession(nil, e); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.KeepTurn(nil); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			api.AgentText: "the key is ****mnop, and[PEM block masked]\nthe end", api.AgentThought: "password: **** it is", "tool": "use ****mnop",
		}
		for kind, text := range want {
			if got := told(host.told, kind); got != text {
				t.Errorf("killed before event %d: %s %q, want %q", dies, kind, got, text)
			}
		}
		if i := slices.IndexFunc(host.told, func(e api.AgentEvent) bool { return e.Kind == "tool" }); host.told[i].ID != "****mnop" || host.told[i].Arguments != `{"a":"****mnop","password":"****"}` || told(host.told[:i], api.AgentText) != "the key is ****mnop, and" {
			t.Errorf("%+v", host.told)
		}
	}
}

// Who doesn't mask tells all at once.
func TestUnmaskedEventsStayAsTheyAre(t *testing.T) {
	host := &keepNotes{}
	r := &Run{Masking: unit.MaskNothing, Session: &Session{}}
	r.LedBy(host, nil)
	if err := r.KeepSession(nil, text(secret)); err != nil || told(host.told, api.AgentText) != secret {
		t.Errorf("%+v %v", host.told, err)
	}
}

const own = "a plain sentence that is secret"

func TestASecretOfARunIsHiddenWhateverItsPolicy(t *testing.T) {
	said := "it is " + own + ", " + secret + " and ada@example.com"
	output := []byte(`{"a":"` + said + `"}`)
	for name, c := range map[string]struct {
		masking       unit.Masking
		hide          []string
		texts, output string // what is shown
	}{
		"nothing is masked":           {unit.MaskNothing, nil, said, said},
		"no secret is nothing":        {unit.MaskTexts, []string{}, "it is " + own + ", ****mnop and ****", said},
		"its secret alone":            {unit.MaskNothing, []string{own}, "it is ****cret, " + secret + " and ada@example.com", "it is ****cret, " + secret + " and ada@example.com"},
		"its secret beside all texts": {unit.MaskTexts, []string{own}, "it is ****cret, ****mnop and ****", "it is ****cret, " + secret + " and ada@example.com"},
		"its secret beside all":       {unit.MaskTextsAndOutput, []string{own}, "it is ****cret, ****mnop and ****", "it is ****cret, ****mnop and ada@example.com"},
		"all, without one":            {unit.MaskTextsAndOutput, nil, "it is " + own + ", ****mnop and ****", "it is " + own + ", ****mnop and ada@example.com"},
	} {
		r := &Run{Masking: c.masking, Unit: &unit.Unit{}}
		r.Hide(c.hide)
		if got := shownAddress(r.Masked(said)); got != shownAddress(c.texts) {
			t.Errorf("%s: %q", name, got)
		}
		got := r.MaskedResult(Result{Output: output, Failure: &api.RunError{Message: said}})
		if want := `{"a":"` + c.output + `"}`; string(got.Output) != want || shownAddress(got.Failure.Message) != shownAddress(c.texts) {
			t.Errorf("%s: %s, %q", name, got.Output, got.Failure.Message)
		}
	}
}

// shownAddress is a text with one form of an address that is masked.
func shownAddress(text string) string {
	before, after, found := strings.Cut(text, " and ")
	if !found || strings.HasPrefix(after, "ada@") {
		return text
	}
	return before + " and ****"
}

func TestMessagesArtifactsAndFindingsAreMasked(t *testing.T) {
	r, _, _ := maskedRun(t)
	parts := []api.Part{{Text: "a " + secret}, {Data: []byte(`["` + secret + `"]`)}, {Data: []byte("no JSON " + secret)}, {File: &api.File{Name: secret}}}
	shown := []api.Part{{Text: "a ****mnop"}, {Data: []byte(`["****mnop"]`)}, {Data: []byte("null")}, {File: &api.File{Name: secret}}}
	message := r.MaskedMessage(api.MessageEvent{ID: secret, Parts: parts, Metadata: []byte(`{"k":"` + secret + `"}`)})
	if diff := cmp.Diff(api.MessageEvent{ID: "****mnop", Parts: shown, Metadata: []byte(`{"k":"****mnop"}`)}, message); diff != "" {
		t.Error(diff)
	}
	artifact := r.MaskedArtifact(api.ArtifactEvent{ID: secret, Name: secret, Parts: parts})
	if diff := cmp.Diff(api.ArtifactEvent{ID: "****mnop", Name: "****mnop", Parts: shown}, artifact); diff != "" {
		t.Error(diff)
	}
	given := &api.RunError{Message: secret, Type: secret, Hint: secret, Findings: []fault.Finding{{Pointer: "/a/" + secret + "/b~1c", File: secret, Message: "got " + secret, Hint: secret, Foreign: secret}}}
	failure := r.MaskedResult(Result{Failure: given}).Failure
	want := &api.RunError{Message: "****mnop", Type: "****mnop", Hint: "****mnop", Findings: []fault.Finding{{Pointer: "/a/****mnop/b~1c", File: "****mnop", Message: "got ****mnop", Hint: "****mnop", Foreign: "****mnop"}}}
	if diff := cmp.Diff(want, failure); diff != "" {
		t.Error(diff)
	}
	if parts[0].Text != "a "+secret || given.Message != secret || given.Findings[0].Foreign != secret {
		t.Errorf("what was given has changed: %+v, %+v", parts, given)
	}
	plain := &Run{Unit: &unit.Unit{}}
	if got := plain.MaskedMessage(api.MessageEvent{ID: secret, Parts: parts}); got.ID != secret || got.Parts[0].Text != "a "+secret {
		t.Errorf("%+v", got)
	}
	if got := plain.MaskedArtifact(api.ArtifactEvent{ID: secret, Parts: parts}); got.ID != secret {
		t.Errorf("%+v", got)
	}
}

func TestAMaskedInputIsNotGivenAgain(t *testing.T) {
	if err := CheckRerun(api.Record{}); err != nil {
		t.Error(err)
	}
	if err := CheckRerun(api.Record{InputMasked: true}); !fault.Is(err, fault.Conflict) || fault.Public(err).Hint == "" {
		t.Errorf("%v", err)
	}
}

// The values of a session's own secrets have no form of their own, and lie across events, too.
func TestASessionsOwnSecretsAreMaskedAcrossEvents(t *testing.T) {
	for _, masking := range []unit.Masking{unit.MaskNothing, unit.MaskTexts} {
		host := &keepNotes{}
		r := &Run{Masking: masking, Session: &Session{}}
		r.Hide([]string{"harbour-wall-1715"})
		r.LedBy(host, nil)
		err := r.KeepSession(nil, text("it is harbour-"), text("wall-17"), text("15, so"))
		if err = errors.Join(err, r.KeepTurn(nil)); err != nil || told(host.told, api.AgentText) != "it is ****1715, so" {
			t.Errorf("%v: %+v %v", masking, host.told, err)
		}
	}
}
