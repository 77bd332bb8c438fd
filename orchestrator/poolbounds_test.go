package orchestrator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/runtime"
)

func TestAFloodBeforeAFailedStartHoldsNobodyUp(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
		return s.Discarded > 0 && len(s.Waiting) == 1 && !s.Waiting[0].Loaded
	})
	w.wantWaited(w.await(w.submitTo("asker", orders{Mark: "a"})))
	w.awaitPoolUnit("asker", "and none is loaded again", func(s api.PoolUnit) bool {
		return s.Refills > pooled.Refills && len(s.Waiting) > 0 && !s.Waiting[0].Loaded
	})
}

func TestAWaitingProgramThatComputesGoes(t *testing.T) {
	t.Parallel()
	began := time.Now()
	w := newPoolFixture(t, map[string]int{"asker": 2}, func(o *settings) {
		o.Containers.Pool.Watch = 20 * time.Millisecond
		o.fixture.engine.CPU = func(spec runtime.ContainerSpec) time.Duration {
			if spec.Labels[runtime.LabelUnit] == "asker" {
				return time.Since(began) * 9 / 10
			}
			return time.Since(began) / 100
		}
	})
	w.await(w.submitTo("asker", orders{Mark: "first"}))
	w.awaitPoolUnit("asker", "one is loaded, goes, and others wait less far", func(s api.PoolUnit) bool {
		return s.Discarded > 0 && len(s.Waiting) == 2 && !s.Waiting[0].Loaded && !s.Waiting[1].Loaded
	})
	w.wantWaited(w.await(w.submitTo("asker", orders{Mark: "a"})))
	w.awaitPoolUnit("asker", "and none is loaded again", func(s api.PoolUnit) bool {
		return len(s.Waiting) == 2 && !s.Waiting[0].Loaded && !s.Waiting[1].Loaded
	})
}

func TestAWaitingProgramThatHardlyComputesStays(t *testing.T) {
	t.Parallel()
	var used atomic.Int64
	looks := make(chan struct{}, 3)
	w := newPoolFixture(t, map[string]int{"asker": 1}, func(o *settings) {
		o.Containers.Pool.Watch = 20 * time.Millisecond
		o.fixture.engine.CPU = func(runtime.ContainerSpec) time.Duration {
			asked := time.Now()
			select {
			case looks <- struct{}{}:
			default:
			}
			time.Sleep(5 * time.Millisecond) // it uses a hundredth of this time: two looks are further apart, however late they come
			return time.Duration(used.Add(int64(time.Since(asked) / 100)))
		}
	})
	waiting := w.asking()
	within(t, func() bool { return len(looks) == cap(looks) }, func() string { return "nobody looks" })
	if pooled := w.poolUnit("asker"); pooled.Discarded != 0 || len(pooled.Waiting) == 0 || pooled.Waiting[0].ID != waiting.ID {
		t.Errorf("%+v", pooled)
	}
}
