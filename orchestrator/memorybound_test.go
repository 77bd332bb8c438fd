package orchestrator

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// memoryGiven gives "worker" a memory limit.
func memoryGiven(bytes int64) func(*settings) {
	return func(o *settings) {
		o.Units["worker"] = units.Settings{Given: unit.Given{Limits: capsule.Limits{MemoryBytes: bytes}}}
	}
}

// totalMemory bounds all runs together.
func totalMemory(bytes int64) func(*settings) {
	return func(o *settings) { o.MemoryBytes = bytes }
}

func (w *fixture) memory() api.MemoryStats {
	w.t.Helper()
	stats, err := w.service.Figures.Stats(trusted.Context(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	return stats.Memory
}

func TestRunsWaitUntilThereIsMemory(t *testing.T) {
	t.Parallel()
	w := newFixture(t, totalMemory(1<<30)) // of which each run has a half
	first, second := w.submit(orders{Mark: "a", Until: "enough"}), w.submit(orders{Mark: "b", Until: "enough"})
	w.until(first, running)
	w.until(second, running)
	third := w.submit(orders{Mark: "c"})
	if got := w.memory(); got.LimitBytes != 1<<30 || got.RunBytes != 1<<30 {
		t.Errorf("%+v", got)
	}
	if record := w.until(third, func(api.Record) bool { return true }); record.State != api.Idle || w.starts("c") > 0 {
		t.Errorf("it didn't wait: %s", show(record))
	}
	w.stop() // and so it is after a restart
	w.start()
	if w.starts("c") > 0 {
		t.Error("it didn't wait after a restart")
	}
	w.open("enough")
	for _, id := range []string{first, second, third} {
		if record := w.await(id); record.Outcome != api.Success {
			t.Error(show(record))
		}
	}
	within(t, func() bool { return w.memory().RunBytes == 0 }, func() string { return "memory is still counted" })
}

func TestTheMachinesMemoryIsTheBound(t *testing.T) {
	t.Parallel()
	w := newFixture(t) // the engine's machine has 4 GiB
	const most = 3276 << 20
	within(t, func() bool { return w.memory().LimitBytes == most }, func() string { return "it isn't known" })
}

func TestARunThatNeverFitsIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change []func(*settings)
		says   []string
	}{
		"by the setting": {
			[]func(*settings){totalMemory(256 << 20)},
			[]string{"512MiB", "256MiB", "the setting memory", "lower limits.memory in agent.yaml", "`memory: 512MiB`"},
		},
		"by the machine": {
			[]func(*settings){memoryGiven(8 << 30)},
			[]string{"8GiB", "80 % of the machine's memory", "lower unit.worker.limits.memory in the server's file", "`memory: 8GiB`"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.change...)
			within(t, func() bool { return w.memory().LimitBytes > 0 }, func() string { return "no bound is known" })
			_, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker", Input: []byte(`{}`)})
			if !fault.Is(err, fault.Forbidden) {
				t.Fatal(err)
			}
			public := fault.Public(err)
			for _, want := range c.says {
				if !strings.Contains(public.Msg+"\n"+public.Hint, want) {
					t.Errorf("%q isn't in %q, %q", want, public.Msg, public.Hint)
				}
			}
			if got := w.memory().RunBytes; got != 0 {
				t.Errorf("%d bytes are counted", got)
			}
		})
	}
}

func TestACallerDoesNotWaitForItsOwnMemory(t *testing.T) {
	t.Parallel()
	w := newCallFixture(t, totalMemory(600<<20), func(o *settings) {
		o.Units["caller"] = units.Settings{Given: unit.Given{MayCall: []string{"worker"}}}
	})
	id := w.submitScript(script{Mark: "a", Calls: []script{{Target: "worker"}}})
	if record := w.await(id); record.Outcome != api.Success {
		t.Errorf("%s\n%s", show(record), strings.Join(w.answers["a"], "\n"))
	}
}

func TestWaitingSandboxesMakeRoomForRuns(t *testing.T) {
	t.Parallel()
	w := newPoolFixture(t, map[string]int{"asker": 2}, totalMemory(600<<20), func(o *settings) { o.Containers.Pool.MemoryBytes = 1 << 30 })
	w.stocked("asker", 2)
	id := w.submit(orders{Mark: "a", Until: "enough"})
	w.until(id, running)
	w.awaitPoolUnit("asker", "it goes", func(s api.PoolUnit) bool { return len(s.Waiting) <= 1 })
	if got := w.memory(); got.RunBytes+got.PoolBytes > got.LimitBytes {
		t.Errorf("%+v", got)
	}
	w.open("enough")
	w.await(id)
	w.stocked("asker", 2)
}

func TestHintsNameTheLineThatHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change []func(*settings)
		says   string
	}{
		"the unit's":     {nil, "raise limits.memory in agent.yaml if"},
		"the operator's": {[]func(*settings){memoryGiven(64 << 20)}, "raise unit.worker.limits.memory in the server's file if"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.change...)
			record := w.await(w.submit(orders{Exit: enginetest.OOMKilled}))
			if record.Outcome != api.OutOfMemory || !strings.Contains(record.Error.Hint, c.says) {
				t.Errorf("%s", show(record))
			}
		})
	}
}
