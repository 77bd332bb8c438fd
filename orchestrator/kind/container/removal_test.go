package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// failure is a call of an engine that fails once: before anything happens, or after, when only
// the answer is lost.
type failure struct {
	method string
	nth    int // of its calls, from 1
	after  bool
}

func (f failure) String() string {
	if f.after {
		return fmt.Sprintf("the answer to %s %d is lost", f.method, f.nth)
	}
	return fmt.Sprintf("%s %d fails", f.method, f.nth)
}

// lossy is an engine of which some calls fail.
type lossy struct {
	*enginetest.Fake

	mu    sync.Mutex
	fails []failure
	seen  map[string]int
}

func (l *lossy) failsAt(fails ...failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails, l.seen = fails, map[string]int{}
}

// around makes a call that may fail.
func (l *lossy) around(method string, call func() error) error {
	l.mu.Lock()
	if l.seen == nil {
		l.seen = map[string]int{}
	}
	l.seen[method]++
	nth := l.seen[method]
	var before, after bool
	for _, f := range l.fails {
		if f.method == method && f.nth == nth {
			before, after = before || !f.after, after || f.after
		}
	}
	l.mu.Unlock()
	if before {
		return errAway
	}
	if err := call(); err != nil || !after {
		return err
	}
	return errAway
}

func (l *lossy) Create(ctx context.Context, spec runtime.ContainerSpec) (id string, err error) {
	err = l.around("Create", func() (err error) {
		id, err = l.Fake.Create(ctx, spec)
		return err
	})
	return id, err
}

func (l *lossy) Attach(ctx context.Context, id string) (streams *runtime.Streams, err error) {
	err = l.around("Attach", func() (err error) {
		streams, err = l.Fake.Attach(ctx, id)
		return err
	})
	return streams, err
}

func (l *lossy) NextExit(ctx context.Context, id string) (exits <-chan runtime.Exit, err error) {
	err = l.around("NextExit", func() (err error) {
		exits, err = l.Fake.NextExit(ctx, id)
		return err
	})
	return exits, err
}

func (l *lossy) Start(ctx context.Context, id string) error {
	return l.around("Start", func() error { return l.Fake.Start(ctx, id) })
}

func (l *lossy) Inspect(ctx context.Context, id string) (state runtime.ContainerState, err error) {
	err = l.around("Inspect", func() (err error) {
		state, err = l.Fake.Inspect(ctx, id)
		return err
	})
	return state, err
}

func (l *lossy) Remove(ctx context.Context, id string) error {
	return l.around("Remove", func() error { return l.Fake.Remove(ctx, id) })
}

func (l *lossy) ContainersByLabel(ctx context.Context, labels map[string]string) (refs []runtime.ContainerRef, err error) {
	err = l.around("ContainersByLabel", func() (err error) {
		refs, err = l.Fake.ContainersByLabel(ctx, labels)
		return err
	})
	return refs, err
}

// failures are all single calls that may fail, the first and the second of each.
func failures() (all []failure) {
	for _, method := range []string{"Create", "Attach", "NextExit", "Start", "Inspect", "Remove", "ContainersByLabel"} {
		for nth := 1; nth <= 2; nth++ {
			all = append(all, failure{method, nth, false}, failure{method, nth, true})
		}
	}
	return all
}

// TestWhateverAnEngineFailsAtNothingIsLeft has each one and each two calls of the engine fail,
// of a run with two attempts. When the engine is well again, nothing of the run is left in it,
// and no attempt has had its program run twice.
func TestWhateverAnEngineFailsAtNothingIsLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	engine := &lossy{Fake: b.engine}
	b.over = engine
	b.unit.Version = "1" // its image is looked up once
	b.restart()
	all := failures()
	for i, one := range all {
		for j, other := range all[i:] {
			if j > 0 && (one.nth > 1 || other.nth > 1 || testing.Short()) {
				continue
			}
			exit := 3 * ((i + j) % 2) // which the init tells, or the engine alone
			name := fmt.Sprintf("%s, %s, exit code %d", one, other, exit)
			starts, attempts := b.withFailures(engine, exit, one, other)
			if got := b.states(); got != "" {
				t.Fatalf("%s: left are containers, %s", name, got)
			}
			if starts > attempts {
				t.Errorf("%s: %d starts in %d attempts", name, starts, attempts)
			}
		}
	}
}

// withFailures makes up to two attempts of a run, and ends it.
func (b *harness) withFailures(engine *lossy, exit int, fails ...failure) (starts, attempts int) {
	b.t.Helper()
	var mu sync.Mutex
	b.runs(func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		mu.Lock()
		starts++
		mu.Unlock()
		succeed(ctx, spec, stdout, stderr)
		return exit
	})
	engine.failsAt(fails...)
	x := b.execution()
	attempts = 1
	_, err := x.Attempt(b.t.Context())
	if err != nil {
		b.again(x)
		attempts++
		_, err = x.Attempt(b.t.Context())
	}
	if err == nil {
		x.Settle(b.t.Context())
	}
	engine.failsAt(fails...) // once more while it is removed
	for range 3 {
		if x.Remove(b.t.Context()) == nil {
			break
		}
	}
	engine.failsAt()
	if err := x.Remove(b.t.Context()); err != nil {
		b.t.Errorf("with an engine that is well: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	return starts, attempts
}

// An engine that fails in the middle of a run may have more of it than the container that is
// known: everything with the run's labels goes.
func TestAfterAnAttemptThatFailedNothingIsTakenForGranted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.runs(leaves(3, func(string) {}))
	b.breaks("Inspect", errAway)
	x := b.execution()
	if _, err := x.Attempt(t.Context()); !fault.Is(err, fault.Unavailable) || x.attempt == nil {
		t.Fatalf("error %v", err)
	}
	b.breaks("Inspect", nil)
	late := b.late("1")
	b.ends(x)
	if _, there := b.engine.Spec(late); there {
		t.Error("what came late is left")
	}
}

// An attempt whose outcome is known may be followed by another one as well.
func TestAContainerThatStaysIsRemovedBeforeTheNextAttempts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.Program = reports(137, nil) // as if somebody had killed it
	engine := &lossy{Fake: b.engine}
	engine.failsAt(failure{"Remove", 1, false})
	b.over = engine
	b.restart()
	x := b.execution()
	x.run.Durable = true
	if got, err := x.Attempt(t.Context()); err != nil || got.Outcome != api.SystemError {
		t.Fatalf("%+v, %v", got, err)
	}
	b.again(x)
	if got := b.states(); got != "exited" {
		t.Fatalf("its container is %q", got)
	}
	b.engine.Program = reports(0, nil)
	var beside string
	b.at("Create", func() { beside = b.states() })
	if got, err := x.Attempt(t.Context()); err != nil || got.Outcome != api.Success || beside != "" {
		t.Errorf("beside the second container is the first, %q: %+v, %v", beside, got, err)
	}
	b.ends(x)
}

func TestTheContainerOfADurableRunStaysUntilItsEndIsStored(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{false, true} {
		b := newBench(t)
		x := b.execution()
		x.run.Durable = durable
		if _, err := x.Attempt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if x.attempt.removal == nil != durable {
			t.Errorf("durable %v: it is removed ahead: %v", durable, x.attempt.removal != nil)
		}
		if !durable {
			testkit.Eventually(t, "it is gone", func() bool { return b.states() == "" })
		}
		b.ends(x)
		if n := strings.Count(b.calls(), "Remove"); n != 1 {
			t.Errorf("durable %v: it was removed %d times", durable, n)
		}
	}
}

func TestWhatAContainerDoesAfterItsProgramsGoodEndIsForTheOperator(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{false, true} {
		b := newBench(t)
		var log testkit.Log
		b.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		b.restart()
		gate := make(chan struct{})
		b.engine.Program = func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
			enginetest.WithInit(succeed)(ctx, spec, stdout, stderr)
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return 9
		}
		x := b.execution()
		x.run.Durable = durable
		result, err := x.Attempt(t.Context())
		close(gate)
		if err != nil || result.Outcome != api.Success {
			t.Fatalf("%+v, %v", result, err)
		}
		b.ends(x)
		if w := strings.Join(x.run.Record.Warnings, "\n"); w != "" || !strings.Contains(log.String(), "container ended otherwise than its program") || !strings.Contains(log.String(), "exit_code=9") {
			t.Errorf("durable %v: warnings %q, %s", durable, w, &log)
		}
	}
}

func TestALogThatWasCutIsAWarning(t *testing.T) {
	t.Parallel()
	for _, exit := range []int{0, 3} {
		b := newBench(t, map[string]string{"agent.yaml": "name: worker\nlimits: {log: 1KiB}\n"})
		b.runs(func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
			fmt.Fprintln(stdout, strings.Repeat(strings.Repeat("x", 99)+"\n", 20))
			succeed(ctx, spec, stdout, stderr)
			return exit
		})
		x := b.execution()
		b.carriesOut(x)
		if w := strings.Join(x.run.Record.Warnings, "\n"); !x.run.Record.Log.Truncated || !strings.Contains(w, "limits.log") || strings.Count(w, "limits.log") != 1 {
			t.Errorf("exit code %d: %+v, warnings %q", exit, x.run.Record.Log, w)
		}
	}
}

// A process that ends leaves its container alone, and its capsule API with it.
func TestAReleasedRunGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x, proceed := b.leftUntil(reports(0, report(0, nil)))
	x.Release() // once more does no harm
	if got := b.states(); got != "running" || strings.Contains(b.calls(), "Remove") || strings.Contains(b.calls(), "Stop") {
		t.Errorf("its container is %q: %s", got, b.calls())
	}
	proceed()
	next := b.resumed(x)
	if got, err := next.Resume(t.Context()); err != nil || got.Outcome != api.Success {
		t.Errorf("%+v, %v", got, err)
	}
	b.ends(next)
}

func TestARunThatCantBeStoredStartsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at   api.State
		asks string
	}{{api.Starting, ""}, {api.Running, "Create"}} {
		b := newBench(t)
		x := b.execution()
		unwritable := errors.New("the disk is full")
		x.run.LedBy(entering{at: c.at, err: unwritable}, nil)
		if _, err := x.Attempt(t.Context()); !errors.Is(err, unwritable) {
			t.Errorf("error %v", err)
		}
		if got := b.calls(); !strings.HasPrefix(got, c.asks) || (c.asks == "") != (got == "") {
			t.Errorf("the engine was asked for %s", got)
		}
		b.ends(x)
	}
}
