package models

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/live"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// talking is the account of a conversation's run, whose transcripts are kept.
func talking(t testing.TB, masking unit.Masking) *account {
	r := &run.Run{ID: "r", Unit: &unit.Unit{}, Masking: masking, Lineage: run.Lineage{Root: "r", Path: []handoff.Step{{}}}}
	r.Record.Context = "chat"
	r.Unit.Policy.Transcript = true
	return New(Models{Transcript: true}).Join(t.Context(), r, nil).(*account)
}

func textPiece(text string) live.Piece { return live.Piece{Kind: live.Text, Text: text} }

func final(text string) live.Piece {
	return live.Piece{Kind: live.Arguments, Part: "0", Tool: capsule.FinalAnswer, Text: text}
}

// plain is what was taken, without the names of answers.
func plain(events []api.TokensEvent) (all []string) {
	for _, e := range events {
		text := strings.TrimSpace(e.Kind + " " + e.Field + ": " + e.Text)
		if e.Lost {
			text = "… " + text
		}
		all = append(all, text)
	}
	return all
}

func TestWordsAreToldAsTheyCome(t *testing.T) {
	t.Parallel()
	a := talking(t, unit.MaskNothing)
	f := &Feature{*a.shared}
	one := f.Follow("r")
	ear := listener{a}.Listen()
	ear.Hear(live.Piece{Kind: live.Thought, Text: "hm"})
	ear.Hear(textPiece("I look "))
	ear.Hear(textPiece("first."))
	ear.Hear(live.Piece{Kind: live.Arguments, Part: "1", Tool: "look", Text: `{"text":"no"}`})
	ear.Hear(final(`{"sure":true,"text":"It bur`))
	ear.Hear(final(`nt\nd`))
	want := []string{"thought : hm", "text : I look first.", "text text: It burnt\nd"}
	late := f.Follow("r")
	for name, got := range map[string][]api.TokensEvent{"first": one.Take(), "late": late.Take(), "page": f.Said("r")} {
		if diff := cmp.Diff(want, plain(got)); diff != "" {
			t.Errorf("%s\n%s", name, diff)
		}
	}
	<-one.News
	ear.Hear(final(`own","note":"x"}`))
	<-one.News
	if got := plain(one.Take()); !cmp.Equal(got, []string{"text text: own", "text note: x"}) {
		t.Errorf("%q", got)
	}
	ear.Close()
	if got := f.Said("r"); len(got) > 0 {
		t.Errorf("%v is said still", got)
	}
	one.Close()
	late.Close()
	if len(a.words.of) > 0 {
		t.Error("the run isn't forgotten")
	}
}

// Secrets are masked, wherever a provider cuts its answer.
func TestWordsAreMaskedAcrossPieces(t *testing.T) {
	t.Parallel()
	const said = "The key is sk-abcdefghijklmnop, the password: hunter22 and ours is harbour-1715, so much. "
	a := talking(t, unit.MaskTexts)
	a.run.Hide([]string{"harbour-1715"})
	want := a.run.Masked(said)
	for size := 1; size < len(said); size++ {
		one := (&Feature{*a.shared}).Follow("r")
		ear, heard := listener{a}.Listen(), ""
		for i := 0; i < len(said); i += size {
			ear.Hear(textPiece(said[i:min(i+size, len(said))]))
			for _, e := range one.Take() {
				heard += e.Text
			}
		}
		if ear.Close(); heard == "" {
			t.Errorf("by %d bytes all is held back", size)
		}
		for _, e := range one.Take() {
			heard += e.Text
		}
		if one.Close(); heard != want {
			t.Fatalf("by %d bytes %q, want %q", size, heard, want)
		}
	}
	for _, secret := range []string{"abcdef", "hunter", "harbour"} {
		if strings.Contains(want, secret) {
			t.Errorf("%s isn't masked: %s", secret, want)
		}
	}
}

func TestWhoMayHearNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(a *account){
		"transcripts are off at the server": func(a *account) { a.models.Transcript = false },
		"transcripts are off in the unit":   func(a *account) { a.run.Unit.Policy.Transcript = false },
		"nobody talks or follows":           func(a *account) { a.run.Record.Context = "" },
		"a session tells by itself":         func(a *account) { a.run.Record.Session = "s" },
	} {
		a := talking(t, unit.MaskTexts)
		change(a)
		if ear := (listener{a}).Listen(); ear != gateway.Ear(nil) {
			t.Errorf("%s: it is heard", name)
		}
		defer (&Feature{*a.shared}).Follow("r").Close()
		heard := (listener{a}).Listen() != nil
		if heard == strings.Contains(name, "transcripts") {
			t.Errorf("%s, with a follower: %v", name, heard)
		}
	}
}

// Whoever reads nothing has the newest of it, and hears that the rest is lost. 200 of them hold at most 40 MiB. It isn't
// parallel: it measures the heap.
func TestFollowersWhoTakeNothingHoldLittle(t *testing.T) {
	const followers, most = 200, 40 << 20
	a := talking(t, unit.MaskNothing)
	before := testkit.HeapBytes()
	var all []*Following
	for range followers {
		all = append(all, (&Feature{*a.shared}).Follow("r"))
	}
	ear := listener{a}.Listen()
	for n := range 20_000 {
		ear.Hear(textPiece(fmt.Sprintf("word %d ", n)))
	}
	ear.Hear(live.Piece{Kind: live.Text, Text: strings.Repeat("x", 1<<20)})
	ear.Hear(final(`{"text":"the end"}`))
	if more := testkit.HeapBytes() - before; more > most {
		t.Errorf("%d followers hold %d KiB", followers, more>>10)
	}
	for _, one := range all {
		if got := plain(one.Take()); !cmp.Equal(got, []string{"… text text: the end"}) {
			t.Fatalf("%q", got)
		}
		one.Close()
	}
}

// What is kept is bounded, and begins where something is missing.
func TestTheOldestWordsAreLost(t *testing.T) {
	t.Parallel()
	var all told
	for n := range 20_000 {
		all.add(api.TokensEvent{Answer: "a", Kind: api.AgentText, Text: fmt.Sprintf("word %d ", n)})
	}
	got := all.take()
	size := 0
	for i, e := range got {
		if size += len(e.Text); e.Lost != (i == 0) {
			t.Errorf("part %d: lost %v", i, e.Lost)
		}
	}
	if last := got[len(got)-1].Text; size > maxSaid || size < maxSaid-2*maxPart || !strings.HasSuffix(last, "word 19999 ") {
		t.Errorf("%d bytes, ending with %.20q", size, last)
	}
}
