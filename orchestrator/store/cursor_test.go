package store

import (
	"math"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func aSeal(t testing.TB) seal {
	t.Helper()
	s, err := newSeal(make([]byte, sealBytes))
	must(t, err)
	return s
}

func TestACursorLeadsBack(t *testing.T) {
	s := aSeal(t)
	for _, p := range []position{{}, {1, 2}, {-1, 1}, {math.MaxInt64, math.MaxInt64}, {math.MinInt64, 1}} {
		got, err := s.position(s.cursor(p))
		must(t, err)
		if got != p {
			t.Errorf("%v became %v", p, got)
		}
	}
}

func TestABrokenCursorIsAnInputFault(t *testing.T) {
	s := open(t)
	good := s.core.seal.cursor(position{1, 2})
	for _, text := range []string{
		"x", good + "A", good[1:], "B" + good[1:], good[:len(good)-1] + "=", good[:len(good)-1] + "-", "\n" + good[1:],
		aSeal(t).cursor(position{1, 2}), // another server's
		s.core.seal.text([]byte{positionForm}), s.core.seal.text(nil),
	} {
		_, err := s.core.seal.position(text)
		wantKind(t, err, fault.Input)
		_, err = s.Runs.List(t.Context(), Filter{Cursor: text})
		wantKind(t, err, fault.Input)
	}
}

// FuzzCursor holds that a cursor is either refused or leads where one leads that was given out.
func FuzzCursor(f *testing.F) {
	s := aSeal(f)
	f.Add("")
	f.Add(s.cursor(position{1, 2}))
	f.Add("AQAAAAAAAAABAAAAAAAAAAI")
	f.Add("\r\nAAAAAAAAAABAAAAAAAAAA")
	fuzzbound.Run(f, func(t *testing.T, text string) {
		p, err := s.position(text)
		if err != nil {
			wantKind(t, err, fault.Input)
			return
		}
		if again, err := s.position(s.cursor(p)); again != p || err != nil {
			t.Errorf("%q is %v, then %v, %v", text, p, again, err)
		}
	})
}
