package orchestrator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

func TestAFloodBeforeAFailedStartHoldsNobodyUp(t *testing.T) {
	w := newPoolFixture(t, map[string]int{"asker": 1}, func(o *settings) { o.Limits.LogBytes = 8 << 20 })
	w.loads(func(ctx context.Context, l loading) int {
		for l.ahead && ctx.Err() == nil {
			fmt.Fprintln(l.stdout, strings.Repeat("x", 1023))
		}
		return 0
	})
	w.await(w.submitTo("asker", orders{Mark: "a"}))
	w.awaitPoolUnit("asker", "one is being loaded, and never asks", func(s api.PoolUnit) bool { return s.Starting == 1 })
	w.stop() // at once, also then
	w.start()
}

func TestAWaitingProgramThatFillsTheDiskGoes(t *testing.T) {
	w := newPoolFixture(t, map[string]int{"asker": 1}, func(o *settings) { o.Limits.DiskBytes = 1 << 20 })
	w.loads(func(_ context.Context, l loading) int {
		if l.ahead {
			for n := range 3 {
				_ = os.WriteFile(filepath.Join(l.dir["/workspace"], fmt.Sprint(n)), make([]byte, 1<<20), 0o600) // until it is gone
			}
		}
		return 0
	})
	w.await(w.submitTo("asker", orders{Mark: "first"}))
	pooled := w.awaitPoolUnit("asker", "one is loaded, goes, and another waits less far", func(s api.PoolUnit) bool {
		return s.Refills >= 2 && len(s.Waiting) == 1 && !s.Waiting[0].Loaded
	})
	w.wantWaited(w.await(w.submitTo("asker", orders{Mark: "a"})))
	w.awaitPoolUnit("asker", "and none is loaded again", func(s api.PoolUnit) bool {
		return s.Refills > pooled.Refills && len(s.Waiting) > 0 && !s.Waiting[0].Loaded
	})
}
