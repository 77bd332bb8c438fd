package handoff_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/handoff"
)

func TestAnybodysProgressIsMadeToFit(t *testing.T) {
	t.Parallel()
	half, over, long := 50.0, 100.1, strings.Repeat("é", 1000)
	for _, c := range []struct{ given, want handoff.Progress }{
		{handoff.Progress{Percent: &half, Step: "a", Message: "b"}, handoff.Progress{Percent: &half, Step: "a", Message: "b"}},
		{handoff.Progress{Percent: &over, Step: "a\x1b[2J\u0085b"}, handoff.Progress{Step: "a [2J b"}},
		{handoff.Progress{Message: long}, handoff.Progress{Message: long[:1020] + "…"}},
	} {
		got := c.given.Fit()
		if diff := cmp.Diff(c.want, got); diff != "" || len(got.Message) > handoff.MaxProgressText {
			t.Error(diff)
		}
	}
}
