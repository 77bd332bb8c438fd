package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/runtime"
)

var errUnreachable = fault.Wrap(fault.Unavailable, runtime.ErrUnreachable, "the engine is away")

// absence has the engine go away at one of its calls, before that is done or before its answer. All
// connections break then, and nothing is answered until it is back.
type absence struct {
	at   int  // the number of the call, from 1; 0: none
	done bool // the call is done, and its answer is lost

	method string // of that call, once it has come
	calls  int
	away   chan struct{} // closed when it is back; nil: it hasn't been away
}

// absent is how long the engine is away.
const absent = 50 * time.Millisecond

// meets returns the error of a call; done: of its answer.
func (w *fixture) meets(method string, done bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &w.absence
	if !done {
		if a.calls++; a.calls == a.at {
			a.method = method
		}
	}
	if a.method == method && a.done == done && a.away == nil {
		w.leaves()
	}
	if a.away != nil && !pause.Over(a.away) {
		return errUnreachable
	}
	return nil
}

// leaves has the engine go away. It is called with the lock held.
func (w *fixture) leaves() {
	w.absence.away = make(chan struct{})
	go func(back chan struct{}) { // the call that it is has the engine's lock
		w.engine.Cut(errUnreachable)
		time.AfterFunc(absent, func() { close(back) })
	}(w.absence.away)
}

// without has the next calls of the engine counted, and it go away at one of them.
func (w *fixture) without(at int, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.absence = absence{at: at, done: done}
}

// met returns the method at which the engine went away, and how many calls there were; "": it has
// not, or is still away.
func (w *fixture) met() (method string, calls int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.absence; a.away != nil && pause.Over(a.away) {
		return a.method, a.calls
	}
	return "", w.absence.calls
}

// wantUndisturbed wants a run to have begun once and ended as it should, in its first attempt, with
// all of its log.
func (w *fixture) wantUndisturbed(id string, o orders) {
	w.t.Helper()
	record := w.await(id)
	outcome := api.Success
	if o.Exit != 0 {
		outcome = api.CapsuleError
	}
	if record.Outcome != outcome || len(record.Attempts) != 0 || record.Retries != 0 || w.starts(o.Mark) != 1 {
		w.t.Errorf("started %d times: %s", w.starts(o.Mark), show(record))
	}
	var want, got []string
	for n := range o.Lines {
		want = append(want, fmt.Sprint("line ", n))
	}
	for n := range o.After {
		want = append(want, fmt.Sprint("after ", n))
	}
	for entry, err := range w.service.Feed.Log(trusted.Context(w.t), id, api.LogFilter{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		got = append(got, entry.Text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Error(diff)
	}
}

// awayAtEach has runs made of which one after the other meets the engine's absence at its next call,
// until one has made all of its calls. It returns at which methods that was.
func (w *fixture) awayAtEach(done bool, o orders, before func()) (methods string) {
	w.t.Helper()
	for at := 1; ; at++ {
		o.Mark = fmt.Sprint("away at ", at)
		before()
		w.without(at, done)
		w.wantUndisturbed(w.submit(o), o)
		method, all := w.met()
		w.without(0, false)
		if w.t.Failed() {
			w.t.Fatalf("away at call %d, %s, after%s", at, method, methods)
		}
		if all < at {
			return methods
		}
		methods += " " + method
	}
}

// The engine goes away at each call that a run makes of it, one after the other.
func TestAnEngineThatIsAwayAtAnyCallUsesNoAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		exit  int
		build bool
		calls string
	}{
		{"of a run that ends well", 0, false, "Create Start Remove"}, // and at Attach and NextExit, in any order
		{"of a run that fails", 3, false, "Create Start Inspect Remove"},
		{"of a run that has its image built", 0, true, "Image Build Create Remove"},
	} {
		for moment, done := range map[string]bool{"before it": false, "before its answer": true} {
			t.Run(c.name+", "+moment, func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, func(o *settings) { o.Retries = 0 })
				image := w.await(w.submit(orders{Mark: "first"})).Image.Ref
				met := w.awayAtEach(done, orders{Lines: 3, After: 2, Exit: c.exit}, func() {
					if !c.build {
						return
					}
					if err := w.engine.RemoveImage(trusted.Context(t), image); err != nil {
						t.Fatal(err)
					}
				})
				for _, method := range strings.Fields(c.calls) {
					if !strings.Contains(met, method) {
						t.Errorf("it wasn't away at %s, but at%s", method, met)
					}
				}
			})
		}
	}
}

// What goes on after an absence may meet the next one at any of its calls.
func TestAnEngineThatGoesAwayAgainUsesNoAttempt(t *testing.T) {
	for moment, done := range map[string]bool{"before a call": false, "before an answer": true} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, func(o *settings) { o.Retries = 0 })
			missing := strings.Fields("Probe ContainersByLabel NextExit Inspect Logs") // all that it asks for before it waits
			for n := 0; len(missing) > 0; n++ {
				at := n%7 + 1 // two of them are asked for twice, and what watches the run may ask as well
				o := orders{Mark: fmt.Sprint("run ", n), Lines: 3, Until: fmt.Sprint("gate ", n), After: 2}
				id := w.submit(o)
				w.until(id, running)
				w.without(at, done)
				w.engine.Cut(errUnreachable)
				within(t, func() bool { method, _ := w.met(); return method != "" }, func() string { return "the engine isn't back" })
				w.open(o.Until)
				w.wantUndisturbed(id, o)
				method, _ := w.met()
				w.without(0, false)
				if t.Failed() {
					t.Fatalf("away at call %d, %s; %q were to come", at, method, missing)
				}
				missing = slices.DeleteFunc(missing, func(m string) bool { return m == method })
			}
		})
	}
}

func TestARunInAContainerThatWaitedOutlivesTheEnginesAbsence(t *testing.T) {
	for unit, what := range map[string]string{"worker": "parked", "asker": "with its program loaded"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newPoolFixture(t, map[string]int{unit: 1}, func(o *settings) { o.Retries = 0 })
			w.stocked(unit, 1)
			o := orders{Mark: "a", Lines: 3, Until: "go", After: 2}
			id := w.submitTo(unit, o)
			w.until(id, running)
			w.breaks("Probe", errUnreachable)
			w.engine.Cut(errUnreachable)
			w.open("go")
			w.breaks("Probe", nil)
			w.wantUndisturbed(id, o)
			w.wantWaited(w.await(id))
		})
	}
}

func TestARunThatIsCancelledWhileTheEngineIsAwayEnds(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	id := w.submit(orders{Mark: "a", Until: "never"})
	w.until(id, running)
	w.breaks("Probe", errUnreachable)
	w.breaks("Remove", errUnreachable)
	w.engine.Cut(errUnreachable)
	within(t, func() bool { return strings.Count(strings.Join(w.engine.Calls(), " "), "Probe") > 2 }, func() string { return "it doesn't wait" })
	w.until(id, func(r api.Record) bool { return r.Waiting != nil && r.Waiting.Reason == "engine" })
	if _, err := w.service.Cancel(trusted.Context(t), id, "because"); err != nil {
		t.Fatal(err)
	}
	record := w.until(id, func(r api.Record) bool { return r.Outcome != "" })
	if record.Outcome != api.WasCancelled || len(record.Attempts) > 0 {
		t.Errorf("record %s", show(record))
	}
	w.breaks("Probe", nil)
	w.breaks("Remove", nil) // nothingLeft wants the container to be gone then
}
