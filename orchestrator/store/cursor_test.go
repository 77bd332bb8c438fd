package store

import (
	"math"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestACursorLeadsBack(t *testing.T) {
	for _, p := range []position{{}, {1, 2}, {-1, 1}, {math.MaxInt64, math.MaxInt64}, {math.MinInt64, 1}} {
		got, err := parseCursor(p.cursor())
		must(t, err)
		if got != p {
			t.Errorf("%v became %v", p, got)
		}
	}
}

func TestABrokenCursorIsAnInputFault(t *testing.T) {
	good := position{1, 2}.cursor()
	for _, text := range []string{"x", good + "A", good[1:], "B" + good[1:], good[:len(good)-1] + "=", good[:len(good)-1] + "-", "\n" + good[1:]} {
		_, err := parseCursor(text)
		wantKind(t, err, fault.Input)
		_, err = open(t).Runs.List(t.Context(), Filter{Cursor: text})
		wantKind(t, err, fault.Input)
	}
}

// FuzzCursor holds that a cursor is either refused or the only text of its position.
func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Add(position{1, 2}.cursor())
	f.Add("AQAAAAAAAAABAAAAAAAAAAI")
	f.Add("\r\nAAAAAAAAAABAAAAAAAAAA")
	fuzzbound.Run(f, func(t *testing.T, text string) {
		p, err := parseCursor(text)
		if err != nil {
			wantKind(t, err, fault.Input)
			return
		}
		if again := p.cursor(); again != text {
			t.Errorf("%q is %v, which is %q", text, p, again)
		}
	})
}
