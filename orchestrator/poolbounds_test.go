package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
)

func TestAPoolKeepsToItsBounds(t *testing.T) {
	many := map[string]int{"worker": 3, "asker": 3}
	full := func(w *works, n int) {
		w.t.Helper()
		within(w.t, func() bool { return w.service.Pool().Waiting == n }, func() string { return string(mustJSON(w.service.Pool())) })
		if name, _ := w.service.pool.next(); name != "" {
			w.t.Errorf("one more is wanted for %q: %s", name, mustJSON(w.service.Pool()))
		}
	}
	t.Run("its size", func(t *testing.T) {
		full(newPoolWorks(t, many, func(o *ServiceOptions) { o.Pool.Size = 4 }), 4)
	})
	t.Run("its memory", func(t *testing.T) {
		w := newPoolWorks(t, many, func(o *ServiceOptions) { o.Pool.MemoryBytes = 3*guessedMemory - 1 })
		full(w, 2)
		if stats := w.service.Pool(); stats.UsedBytes != 2*guessedMemory {
			t.Errorf("%+v", stats)
		}
	})
	t.Run("and gives way to runs that wait", func(t *testing.T) {
		w := newPoolWorks(t, map[string]int{"worker": 1}, func(o *ServiceOptions) { o.Concurrency = 1 })
		w.stocked("worker", 1)
		first := w.submit(orders{Mark: "a", Until: "go"})
		w.until(first, running)
		second := w.submit(orders{Mark: "b"})
		_, waiting := w.service.queue.Counts()
		if name, _ := w.service.pool.next(); name != "" || len(waiting) != 1 {
			t.Errorf("%q is to be filled while %d units wait", name, len(waiting))
		}
		w.open("go")
		w.await(first)
		w.await(second)
		w.awaitShelf("worker", "it is filled again", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 })
	})
	t.Run("and gives way to a container that is being started", func(t *testing.T) {
		w := newPoolWorks(t, map[string]int{"worker": 1})
		w.stocked("worker", 1)
		started := w.service.pool.starts()
		w.wantWaited(w.await(w.submit(orders{Mark: "a"})))
		if name, _ := w.service.pool.next(); name != "" {
			t.Errorf("%q is to be filled", name)
		}
		started()
		w.awaitShelf("worker", "it is filled again", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 })
	})
	t.Run("and stops for a while where it fails", func(t *testing.T) {
		w := newPoolWorks(t, nil, func(o *ServiceOptions) { o.Pool.Size = 2 })
		w.breaks("Start", errors.New("no"))
		write(t, filepath.Join(w.opts.Sources[0], "worker", "agent.yaml"), "name: worker\nwarm: 1\n")
		p := w.service.pool
		p.survey(t.Context())
		p.nudge()
		w.awaitShelf("worker", "it has failed", func(s api.PoolUnit) bool { return s.Failures == 1 && s.Starting == 0 })
		if name, _ := p.next(); name != "" {
			t.Errorf("%q is tried again at once", name)
		}
		w.breaks("Start", nil)
		p.mu.Lock()
		if left := time.Until(p.shelf("worker").pause); left <= 0 || left > fillPause {
			t.Errorf("it is tried again in %v", left)
		}
		p.shelf("worker").pause = time.Time{}
		p.mu.Unlock()
		p.nudge()
		w.stocked("worker", 1)
		if left, _ := filepath.Glob(filepath.Join(w.opts.Home, "pool", "*")); len(left) != 1 {
			t.Errorf("directories %v", left)
		}
	})
}

func TestAFloodBeforeAFailedStartHoldsNobodyUp(t *testing.T) {
	w := newPoolWorks(t, map[string]int{"asker": 1}, func(o *ServiceOptions) { o.Limits.LogBytes = 8 << 20 })
	w.loads(func(ctx context.Context, l loading) int {
		for l.ahead && ctx.Err() == nil {
			fmt.Fprintln(l.stdout, strings.Repeat("x", 1023))
		}
		return 0
	})
	w.await(w.submitTo("asker", orders{Mark: "a"}))
	w.awaitShelf("asker", "one is being loaded, and never asks", func(s api.PoolUnit) bool { return s.Starting == 1 })
	w.stop() // at once, also then
	w.start()
}

func TestAWaitingProgramThatFillsTheDiskGoes(t *testing.T) {
	w := newPoolWorks(t, map[string]int{"asker": 1}, func(o *ServiceOptions) { o.Limits.DiskBytes = 1 << 20 })
	w.loads(func(_ context.Context, l loading) int {
		if l.ahead {
			for n := range 3 {
				_ = os.WriteFile(filepath.Join(l.dir["/workspace"], fmt.Sprint(n)), make([]byte, 1<<20), 0o600) // until it is gone
			}
		}
		return 0
	})
	w.await(w.submitTo("asker", orders{Mark: "first"}))
	shelf := w.awaitShelf("asker", "one is loaded, goes, and another waits less far", func(s api.PoolUnit) bool {
		return w.muted("asker") && len(s.Waiting) == 1 && !s.Waiting[0].Loaded
	})
	w.wantWaited(w.await(w.submitTo("asker", orders{Mark: "a"})))
	w.awaitShelf("asker", "and none is loaded again", func(s api.PoolUnit) bool {
		return s.Refills > shelf.Refills && len(s.Waiting) > 0 && !s.Waiting[0].Loaded
	})
}

// muted reports whether a unit's program isn't started ahead any more.
func (w *works) muted(unit string) bool {
	p := w.service.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shelf(unit).mute != ""
}
