package orchestrator

import (
	"context"
	"fmt"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// claiming has something happen in the middle of the next claim, when its input is in place
// and its program hears nothing yet.
func (w *fixture) claiming(do func()) { w.claims = do }

// watchedKind is a kind of unit that a test interferes with.
type watchedKind struct {
	run.Kind
	w *fixture
}

func (k watchedKind) Execution(r *run.Run) run.Execution {
	r.LedBy(watchedHost{w: k.w, id: r.ID}, nil)
	return k.Kind.Execution(r)
}

// watchedHost does what the test wants before the capsule API of an attempt is made.
type watchedHost struct {
	run.Host
	w  *fixture
	id string
}

func (h watchedHost) job() *job { return h.w.latest.Load().jobs.get(h.id) }

func (h watchedHost) Aside(ctx context.Context, wait func()) error { return h.job().Aside(ctx, wait) }

func (h watchedHost) Calls() run.ChildRuns {
	if do := h.w.claims; do != nil {
		h.w.claims = nil // there is one run at a time
		do()
	}
	return h.job().Calls()
}

func (h watchedHost) Save(t api.Transition) error { return h.job().Save(t) }
func (h watchedHost) Note(e run.Event)            { h.job().Note(e) }
func (h watchedHost) Logged() run.Lines           { return h.job().Logged() }
func (h watchedHost) CancelRequest() error        { return h.job().CancelRequest() }

func (h watchedHost) Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	return h.job().Waiting(ctx)
}

func TestAProgramThatEndsBeforeItHasItsRun(t *testing.T) {
	t.Parallel()
	w := newPoolFixture(t, map[string]int{"worker": 1, "asker": 1}, watching)
	w.asking()
	for unit, most := range map[string]int{"worker": 1, "asker": 0} { // of a killed init nobody may know how far it came
		t.Run(unit+": the run starts one of its own", func(t *testing.T) {
			waiting := w.awaitPoolUnit(unit, "one waits", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 }).Waiting[0]
			w.remember()
			w.claiming(func() {
				if err := w.engine.Kill(trusted.Context(t), waiting.Container); err != nil {
					t.Error(err)
				}
				if unit == "asker" { // whose request goes with it
					api := w.warmed(waiting.ID).API
					within(t, func() bool { return !api.Live() }, func() string { return "its request is held" })
				}
			})
			record := w.await(w.submitTo(unit, orders{Mark: unit, File: "f"}))
			if record.Outcome != api.Success || w.starts(unit) != 1 || record.Retries > most || len(record.Files) != 1 {
				t.Errorf("started %d times: %s", w.starts(unit), show(record))
			}
			w.wantLegal(record)
			keepsSchema(t, record)
		})
	}
	t.Run("and one that can't even be removed goes at the end", func(t *testing.T) {
		waiting := w.loaded("asker")
		w.remember()
		w.claiming(func() {
			w.breaks("Remove", fault.New(fault.Unavailable, "the engine is away"))
			if err := w.engine.Kill(trusted.Context(t), waiting.Container); err != nil {
				t.Error(err)
			}
			api := w.warmed(waiting.ID).API
			within(t, func() bool { return !api.Live() }, func() string { return "its request is held" })
		})
		id := w.submitTo("asker", orders{Mark: "z", Until: "z"})
		w.until(id, running)
		w.until(id, func(r api.Record) bool { return w.starts("z") == 1 })
		w.breaks("Remove", nil)
		w.open("z")
		w.wantCold(w.await(id))
		if refs, _ := w.engine.ContainersByLabel(trusted.Context(t), map[string]string{runtime.LabelRun: waiting.ID}); len(refs) > 0 {
			t.Errorf("left: %v", refs)
		}
	})
}

// warmed returns a sandbox that a test has seen waiting, also when it is some run's by now.
func (w *fixture) warmed(id string) *pool.Sandbox { return w.known[id] }

func (w *fixture) remember() {
	for _, waiting := range w.inContainers.Pool().Waiting() {
		w.known[waiting.ID] = waiting
	}
}

func TestTheLogBehindARefusedSandboxIsWholeAfterARestart(t *testing.T) {
	t.Parallel()
	w := newPoolFixture(t, map[string]int{"asker": 1}, watching)
	w.loads(func(_ context.Context, l loading) int {
		fmt.Fprint(l.stdout, "loading\nloaded\n")
		return 0
	})
	waiting := w.asking()
	w.remember()
	w.claiming(func() {
		if err := w.engine.Kill(trusted.Context(t), waiting.Container); err != nil {
			t.Error(err)
		}
		api := w.warmed(waiting.ID).API
		within(t, func() bool { return !api.Live() }, func() string { return "its request is held" })
	})
	id := w.submitTo("asker", orders{Mark: "log", Until: "log", Lines: 1, After: 3})
	within(t, func() bool { return len(w.lines(id)) == 5 }, func() string { return fmt.Sprintf("lines %q", w.lines(id)) }) // two of the refused one
	w.stop()
	w.start()
	w.open("log")
	if w.await(id); len(w.lines(id)) != 8 {
		t.Errorf("lines %q", w.lines(id))
	}
}

func watching(s *settings) { s.watched = true }
