package orchestrator

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"go.uber.org/goleak"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func TestAPoolServesRuns(t *testing.T) {
	t.Parallel()
	w := newPoolFixture(t, map[string]int{"worker": 2})
	t.Run("one takes what waits, and another comes in its place", func(t *testing.T) {
		waiting := w.stocked("worker", 2).Waiting
		record := w.await(w.submit(orders{Mark: "a", File: "f", Lines: 2}))
		w.wantWaited(record)
		if record.Container.ID != waiting[0].Container || w.starts("a") != 1 {
			t.Errorf("not the oldest of %+v: %s", waiting, show(record))
		}
		pooled := w.stocked("worker", 2)
		if pooled.Hits != 1 || pooled.Misses != 0 || pooled.Refills != 3 || pooled.Waiting[0].ID != waiting[1].ID {
			t.Errorf("%+v", pooled)
		}
	})
	t.Run("each has a container of its own", func(t *testing.T) {
		seen := map[string]bool{}
		var ids []string
		for range 30 {
			ids = append(ids, w.submit(orders{Mark: "b"}))
		}
		for _, id := range ids {
			record := w.await(id)
			if record.Outcome != api.Success || seen[record.Container.ID] {
				t.Errorf("record %s", show(record))
			}
			seen[record.Container.ID] = true
		}
		if pooled := w.poolUnit("worker"); pooled.Hits+pooled.Misses != 31 || w.starts("b") != 30 {
			t.Errorf("%d starts, %+v", w.starts("b"), pooled)
		}
	})
	t.Run("nothing waits for a unit that nobody calls, or that was called once", func(t *testing.T) {
		w.await(w.submitTo("asker", orders{Mark: "c"}))
		if pooled := w.poolUnit("asker"); pooled.Wanted != 0 || pooled.Refills != 0 {
			t.Errorf("%+v", pooled)
		}
	})
	t.Run("something does for one that was called twice", func(t *testing.T) {
		w.await(w.submitTo("asker", orders{Mark: "c"}))
		w.awaitPoolUnit("asker", "one waits", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 })
	})
}

func TestAPoolFollowsItsUnits(t *testing.T) {
	t.Parallel()
	t.Run("what agent.yaml asks for", func(t *testing.T) {
		w := newPoolFixture(t, nil, func(o *settings) {
			write(t, filepath.Join(o.Sources[0], "worker", "agent.yaml"), "name: worker\nwarm: 1\n")
		})
		w.stocked("worker", 1)
	})
	t.Run("a new version's runs get none of the old one's, and these go", func(t *testing.T) {
		w := newPoolFixture(t, map[string]int{"worker": 2})
		old := w.stocked("worker", 2).Waiting
		write(t, filepath.Join(w.opts.Sources[0], "worker", "agent.yaml"), "name: worker\ndescription: Another.\n")
		record := w.await(w.submit(orders{Mark: "a"}))
		isOld := func(id string) bool {
			return slices.ContainsFunc(old, func(e api.PoolSandbox) bool { return e.Container == id })
		}
		if record.Outcome != api.Success || isOld(record.Container.ID) {
			t.Errorf("record %s", show(record))
		}
		w.awaitPoolUnit("worker", "new ones wait", func(s api.PoolUnit) bool {
			return len(s.Waiting) == 2 && !isOld(s.Waiting[0].Container) && !isOld(s.Waiting[1].Container)
		})
		within(t, func() bool {
			refs, err := w.engine.ContainersByLabel(trusted.Context(t), map[string]string{runtime.LabelRun: ""})
			return err == nil && !slices.ContainsFunc(refs, func(r runtime.ContainerRef) bool { return isOld(r.ID) })
		}, func() string { return "old containers are left" })
		w.wantWaited(w.await(w.submit(orders{Mark: "b"})))
	})
	t.Run("what dies while it waits is replaced, and no run gets it", func(t *testing.T) {
		w := newPoolFixture(t, map[string]int{"worker": 1})
		dead := w.stocked("worker", 1).Waiting[0]
		if err := w.engine.Kill(trusted.Context(t), dead.Container); err != nil {
			t.Fatal(err)
		}
		record := w.await(w.submit(orders{Mark: "a"}))
		if record.Outcome != api.Success || record.Container.ID == dead.Container || w.starts("a") != 1 {
			t.Errorf("record %s", show(record))
		}
		w.awaitPoolUnit("worker", "another waits", func(s api.PoolUnit) bool { return len(s.Waiting) == 1 && s.Waiting[0].ID != dead.ID })
	})
}

func TestProgramsThatAskAreLoadedAhead(t *testing.T) {
	t.Parallel()
	t.Run("when one was seen to ask", func(t *testing.T) {
		w := newPoolFixture(t, map[string]int{"asker": 1})
		if pooled := w.stocked("asker", 1); pooled.Waiting[0].Loaded {
			t.Errorf("it is loaded before anybody knows that it asks: %+v", pooled)
		}
		first := w.asking()
		for _, mark := range []string{"a", "b", "c"} {
			w.loaded("asker")
			record := w.await(w.submitTo("asker", orders{Mark: mark, File: "f"}))
			w.wantWaited(record)
			if len(record.Files) != 1 || w.starts(mark) != 1 {
				t.Errorf("started %d times: %s", w.starts(mark), show(record))
			}
			if mark == "a" && record.Container.ID != first.Container {
				t.Errorf("not %+v: %s", first, show(record))
			}
		}
	})
	t.Run("but not one that asks only where there is a run", func(t *testing.T) {
		w := newPoolFixture(t, map[string]int{"asker": 1})
		w.loads(func(_ context.Context, l loading) int {
			if l.ahead {
				return 7
			}
			return 0
		})
		w.await(w.submitTo("asker", orders{Mark: "first"}))
		pooled := w.awaitPoolUnit("asker", "it is started less far", func(s api.PoolUnit) bool { return s.Failures == 1 && len(s.Waiting) == 1 })
		if pooled.Waiting[0].Loaded {
			t.Errorf("%+v", pooled)
		}
		w.wantWaited(w.await(w.submitTo("asker", orders{Mark: "a"})))
		pooled = w.awaitPoolUnit("asker", "another waits", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 && s.Refills > pooled.Refills })
		if pooled.Failures != 1 || pooled.Waiting[0].Loaded {
			t.Errorf("it was tried again: %+v", pooled)
		}
	})
}

func TestAPoolLeavesNothing(t *testing.T) {
	// Not parallel: it counts the goroutines of the process.
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { // after those of the fixture
		if err := testkit.Leaks(before); err != nil {
			t.Error(err)
		}
	})
	w := newPoolFixture(t, map[string]int{"worker": 2, "asker": 2})
	w.asking()
	for range 5 {
		w.await(w.submit(orders{Mark: "a"}))
		w.await(w.submitTo("asker", orders{Mark: "a"}))
	}
	going := w.submitTo("asker", orders{Mark: "b", Until: "go"})
	w.until(going, running)
	w.stop() // it has emptied the pool: what is left is the run's
	if refs, err := w.engine.ContainersByLabel(trusted.Context(t), map[string]string{runtime.LabelRun: ""}); err != nil || len(refs) != 1 {
		t.Errorf("%v %v", refs, err)
	}
	w.start()
	w.open("go")
	w.await(going)
	w.stocked("worker", 2)
}
