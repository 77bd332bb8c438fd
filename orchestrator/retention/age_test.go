package retention

import (
	"testing"
	"time"
)

func TestRunsGrowOldByTheTimeThatPasses(t *testing.T) {
	t.Parallel()
	opened := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ says, want time.Duration }{
		"a clock that goes":        {time.Hour, time.Hour},
		"a clock that jumps on":    {365 * 24 * time.Hour, time.Hour},
		"a clock that is set back": {-time.Hour, -time.Hour},
	} {
		if got := steady(opened, opened.Add(c.says), time.Hour); !got.Equal(opened.Add(c.want)) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
