package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/capsule/au/check"
)

func TestAUnitWithoutACard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		card func(out string) int
		says string
	}{
		{"it exits with another code", func(string) int { return 2 }, "it exited with 2"},
		{"it prints nothing", func(string) int { return 0 }, "gives no model card"},
		{"it prints no JSON", func(out string) int { return started{out: out}.prints("usage: worker") }, "gives no model card"},
		{"it prints another document", func(out string) int { return started{out: out}.prints(`{"name":"worker"}`) }, "gives no model card"},
		{"it prints too much", func(out string) int {
			return started{out: out}.prints(`{"a":"` + strings.Repeat("x", au.MaxCardBytes) + `"}`)
		}, "gives no model card"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, f := newUnit(t, nil)
			f.card = c.card
			x := b.given("x", "")
			_, err := x.Attempt(t.Context())
			if !fault.Is(err, fault.Capsule) || !strings.Contains(err.Error(), c.says) || fault.Public(err).Hint == "" && len(fault.Public(err).Findings) == 0 {
				t.Errorf("error %v", err)
			}
			if entries, _ := os.ReadDir(b.home.Cards); len(entries) > 0 {
				t.Errorf("remembered are %v", entries)
			}
			b.ends(x)
			if _, err := b.kind.cards.ask(t.Context(), b.unit); !fault.Is(err, fault.Capsule) {
				t.Errorf("asked beside a run: %v", err)
			}
			b.nothingLeft()
		})
	}
	if _, err := describedBy("worker", Observed{Run: check.Run{TimedOut: true}}); !fault.Is(err, fault.Capsule) || !strings.Contains(err.Error(), "more than 10s") {
		t.Errorf("one that takes too long: %v", err)
	}
}

func TestACardIsRememberedForItsImage(t *testing.T) {
	t.Parallel()
	b, f := newUnit(t, counts)
	for range 2 {
		raw, err := b.kind.cards.ask(t.Context(), b.unit)
		if err != nil || !strings.Contains(string(raw), `"no such page"`) {
			t.Fatalf("%s, %v", raw, err)
		}
		b.restart()
	}
	b.carriesOut(b.given("x", ""))
	if f.asked() != 1 {
		t.Errorf("it was asked %d times", f.asked())
	}
	entries, err := os.ReadDir(b.home.Cards)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, damaged := range []string{"", "{", `{"name":"of another version"}`} {
		must(os.WriteFile(filepath.Join(b.home.Cards, entries[0].Name()), []byte(damaged), 0o600))
		before := f.asked()
		if raw, err := b.kind.cards.ask(t.Context(), b.unit); err != nil || !strings.Contains(string(raw), "Counts.") || f.asked() != before+1 {
			t.Errorf("with %q: %s, %v", damaged, raw, err)
		}
	}
	b.nothingLeft()
	if left := below(t, b.home.Runs); strings.Contains(left, "card") {
		t.Errorf("left are %s", left)
	}
}

func TestOnlyUnitsHaveCards(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, card := b.kind.cards.ask(t.Context(), b.unit)
	_, described := b.kind.cards.describe(t.Context(), b.unit, nil)
	_, stdin := b.kind.cards.stdinBytes(b.unit)
	_, tried := b.kind.trials.try(t.Context(), b.unit, Trial{})
	for _, err := range []error{card, described, stdin, tried} {
		if !fault.Is(err, fault.Input) || strings.Contains(strings.Join(b.engine.Calls(), " "), "Create") {
			t.Errorf("error %v", err)
		}
	}
}

func TestACardOfAnImageThatSomebodyRemoved(t *testing.T) {
	t.Parallel()
	b, f := newUnit(t, counts)
	b.unit.Version = "1"
	x := b.given("x", "")
	b.carriesOut(x)
	must(b.engine.RemoveImage(t.Context(), x.run.Record.Image.ID))
	must(os.RemoveAll(b.home.Cards))
	if _, err := b.kind.cards.ask(t.Context(), b.unit); err != nil || f.asked() != 2 {
		t.Errorf("%v, asked %d times", err, f.asked())
	}
}
