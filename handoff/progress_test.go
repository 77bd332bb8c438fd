package handoff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnybodysProgressIsMadeToFit(t *testing.T) {
	t.Parallel()
	half, over, long := 50.0, 100.1, strings.Repeat("é", 1000)
	for _, c := range []struct{ given, want Progress }{
		{Progress{Percent: &half, Step: "a", Message: "b"}, Progress{Percent: &half, Step: "a", Message: "b"}},
		{Progress{Percent: &over, Step: "a\x1b[2J\u0085b"}, Progress{Step: "a [2J b"}},
		{Progress{Message: long}, Progress{Message: long[:1020] + "…"}},
	} {
		got := c.given.Fit()
		if diff := cmp.Diff(c.want, got); diff != "" || len(got.Message) > maxProgressText {
			t.Error(diff)
		}
	}
}
