package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

func TestTheLoopLeadsAKindThroughARun(t *testing.T) {
	t.Parallel()
	transient := func(times int) func(context.Context, *actor) (run.Result, error) {
		return func(_ context.Context, a *actor) (run.Result, error) {
			if a.Run.Attempt <= times {
				return a.fails(api.CategoryTransient)
			}
			return a.succeed()
		}
	}
	faults := func(times int, err error) func(context.Context, *actor) (run.Result, error) {
		return func(_ context.Context, a *actor) (run.Result, error) {
			if a.Run.Attempt > times {
				return a.succeed()
			}
			if started := a.Enter(api.Starting, ""); started != nil {
				return run.Result{}, started
			}
			return run.Result{}, err
		}
	}
	for _, c := range []struct {
		name     string
		attempt  func(context.Context, *actor) (run.Result, error)
		retries  int
		calls    string
		states   string
		outcome  api.Outcome
		attempts int
		err      error
		mistake  bool // of ours: an error of any sort
	}{
		{
			name: "that succeeds", retries: 2,
			calls:  "attempt settle remove",
			states: "idle starting running completed cleanup idle", outcome: api.Success,
		},
		{
			name: "that fails for a reason that passes", attempt: transient(1), retries: 2,
			calls:  "attempt discard attempt settle remove",
			states: "idle starting running failed starting running completed cleanup idle", outcome: api.Success, attempts: 1,
		},
		{
			name: "that fails for a reason that may pass, as often as it may", attempt: transient(9), retries: 2,
			calls:  "attempt discard attempt discard attempt settle remove",
			states: "idle starting running failed starting running failed starting running failed cleanup idle", outcome: api.CapsuleError, attempts: 2,
		},
		{
			name: "that may be tried once", attempt: transient(9),
			calls:  "attempt settle remove",
			states: "idle starting running failed cleanup idle", outcome: api.CapsuleError,
		},
		{
			name: "that fails for a reason that stays", retries: 2,
			attempt: func(_ context.Context, a *actor) (run.Result, error) { return a.fails(api.CategoryAgent) },
			calls:   "attempt settle remove",
			states:  "idle starting running failed cleanup idle", outcome: api.CapsuleError,
		},
		{
			name: "whose attempt is a fault that passes", attempt: faults(1, errAway), retries: 2,
			calls:  "attempt discard attempt settle remove",
			states: "idle starting failed starting running completed cleanup idle", outcome: api.Success, attempts: 1,
		},
		{
			name: "whose attempts are all faults", attempt: faults(9, errAway), retries: 1,
			calls:  "attempt discard attempt settle remove",
			states: "idle starting failed starting failed cleanup idle", outcome: api.SystemError, attempts: 1, err: errAway,
		},
		{
			name: "whose attempt is a mistake of ours", attempt: faults(9, os.ErrInvalid), retries: 2,
			calls:  "attempt settle remove",
			states: "idle starting failed cleanup idle", outcome: api.SystemError, err: os.ErrInvalid,
		},
		{
			name: "that its kind takes where it can't go", retries: 2,
			attempt: func(_ context.Context, a *actor) (run.Result, error) { return run.Result{}, a.Enter(api.Running, "") },
			calls:   "attempt settle remove",
			states:  "idle failed cleanup idle", outcome: api.SystemError, mistake: true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &stage{attempt: c.attempt}
			l := playLocal(t, s, Options{Retries: c.retries, RetryDelay: time.Nanosecond})
			ended, err := l.Run(trusted.Context(t), playRequest(t, "u"))
			record := ended.Record
			if c.mistake && err == nil || !c.mistake && !errors.Is(err, c.err) {
				t.Errorf("error %v", err)
			}
			wantCalls(t, s, record.ID, c.calls)
			wantStates(t, record, c.states)
			if record.Outcome != c.outcome || len(record.Attempts) != c.attempts || record.Retries != c.attempts || record.FinishedAt == nil {
				t.Errorf("record %s", show(record))
			}
			keepsSchema(t, record)
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(l.data.runs()); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestAnEarlierAttemptKeepsItsUsage(t *testing.T) {
	t.Parallel()
	s := &stage{attempt: func(_ context.Context, a *actor) (run.Result, error) {
		if a.Run.Attempt > 1 {
			if a.Record.Usage != nil {
				t.Errorf("the attempt begins with the usage of another: %+v", a.Record.Usage)
			}
			return a.succeed()
		}
		a.Record.Usage = &api.Usage{PeakMemoryBytes: 7}
		write(t, a.OutputDir()+"/left", "of the first attempt")
		return a.fails(api.CategoryTransient)
	}}
	l := playLocal(t, s, Options{Retries: 1, RetryDelay: time.Nanosecond})
	defer l.Close()
	ended, err := l.Run(trusted.Context(t), playRequest(t, "u"))
	record := ended.Record
	if err != nil || record.Usage != nil || len(record.Attempts) != 1 {
		t.Fatalf("%v %s", err, show(record))
	}
	first := record.Attempts[0]
	if first.Number != 1 || first.Usage.PeakMemoryBytes != 7 || *first.ExitCode != 3 || first.Error.Message != "it went wrong" || first.FinishedAt.IsZero() {
		t.Errorf("%+v", first)
	}
	if _, err := os.Stat(l.runPath(record.ID) + "/output/left"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the output of the first attempt: %v", err)
	}
}

func TestEachRetryWaitsTwiceAsLong(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var began []time.Time
		s := &stage{attempt: func(_ context.Context, a *actor) (run.Result, error) {
			began = append(began, time.Now())
			return a.fails(api.CategoryTransient)
		}}
		l := playLocal(t, s, Options{Home: home, Retries: 3, RetryDelay: time.Minute})
		if _, err := l.Run(trusted.Context(t), playRequest(t, "u")); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for n, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
			if got := began[n+1].Sub(began[n]); got < want || got > want+time.Second {
				t.Errorf("retry %d came after %v", n+1, got)
			}
		}
	})
}

func TestARunIsCancelledWithItsCaller(t *testing.T) {
	t.Parallel()
	because := errors.New("nobody waits")
	t.Run("while it runs", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(trusted.Context(t))
		s := &stage{attempt: func(ctx context.Context, a *actor) (run.Result, error) {
			if err := a.begin(); err != nil {
				return run.Result{}, err
			}
			cancel(because)
			return a.waits(ctx, nil)
		}}
		wantCancelled(t, ctx, s, "attempt settle remove", "idle starting running cancelled cleanup idle")
	})
	t.Run("before it has a program", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(trusted.Context(t))
		s := &stage{attempt: func(ctx context.Context, a *actor) (run.Result, error) {
			if err := a.Enter(api.Starting, ""); err != nil {
				return run.Result{}, err
			}
			cancel(because)
			<-ctx.Done()
			return run.Result{}, errors.New("the start was broken off")
		}}
		wantCancelled(t, ctx, s, "attempt settle remove", "idle starting cancelled cleanup idle")
	})
	t.Run("while it waits for its next attempt", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(trusted.Context(t))
		s := &stage{attempt: func(_ context.Context, a *actor) (run.Result, error) {
			time.AfterFunc(10*time.Millisecond, func() { cancel(because) })
			return a.fails(api.CategoryTransient)
		}}
		wantCancelled(t, ctx, s, "attempt discard settle remove", "idle starting running failed cancelled cleanup idle")
	})
	t.Run("before it has begun", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(trusted.Context(t))
		cancel(because)
		s := &stage{attempt: func(ctx context.Context, a *actor) (run.Result, error) {
			if ctx.Err() == nil {
				<-ctx.Done()
			}
			return run.Result{}, context.Cause(ctx)
		}}
		l := playLocal(t, s, Options{})
		defer l.Close()
		ended, err := l.Run(ctx, playRequest(t, "u"))
		if err != nil || ended.Record.Outcome != api.WasCancelled {
			t.Errorf("%v %s", err, show(ended.Record))
		}
	})
}

// wantCancelled runs a unit that is cancelled on its way: for it nothing is a fault.
func wantCancelled(t *testing.T, ctx context.Context, s *stage, calls, states string) { //nolint:revive // t comes first in tests
	t.Helper()
	l := playLocal(t, s, Options{Retries: 1, RetryDelay: time.Hour})
	defer l.Close()
	ended, err := l.Run(ctx, playRequest(t, "u"))
	record := ended.Record
	if err != nil || record.Outcome != api.WasCancelled || record.State != api.Cancelled || !strings.Contains(record.Error.Message, "nobody waits") {
		t.Errorf("%v %s", err, show(record))
	}
	wantCalls(t, s, record.ID, calls)
	wantStates(t, record, states)
	keepsSchema(t, record)
}

func TestWhatIsRefusedIsNeverStarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*Request, *stage)
		kind   fault.Kind
		says   string
	}{
		{"by its kind", func(_ *Request, s *stage) {
			s.check = func(run.Request) error { return fault.New(fault.Unsupported, "not on a Monday") }
		}, fault.Unsupported, "not on a Monday"},
		{"by its contract", func(r *Request, _ *stage) { r.Input = payloadOf(t, `{"exit":"x"}`) }, fault.Input, "breaks the contract"},
		{"since nobody knows its kind", func(r *Request, _ *stage) { r.Unit.Kind = "dreamt" }, fault.Unsupported, `a unit of the kind "dreamt"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &stage{}
			l := playLocal(t, s, Options{})
			req := playRequest(t, "u")
			req.Observe = func(e run.Event) { t.Errorf("told of %+v", e) }
			c.change(&req, s)
			ended, err := l.Run(trusted.Context(t), req)
			if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || ended.Record.ID != "" || len(s.asked) > 0 {
				t.Errorf("%v %s, asked for %v", err, show(ended.Record), s.asked)
			}
			if left, _ := os.ReadDir(l.home.Runs); len(left) > 0 {
				t.Errorf("left %v", left)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A follower may find the job of a run just before it goes, and ask it for news just after.
func TestWhoFollowsARunIsToldThatItsJobIsGone(t *testing.T) {
	t.Parallel()
	l := newLoop(Options{})
	for n := range 20_000 {
		j := l.lead(trusted.Context(t), &run.Run{ID: fmt.Sprint(n)}, nil, nil)
		if err := l.jobs.admit(j, 0); err != nil {
			t.Fatal(err)
		}
		go l.retire(j)
		news, live := l.jobs.heard(j.ID).Next()
		if !live {
			continue
		}
		select {
		case <-news:
		case <-time.After(testkit.Patience):
			t.Fatalf("the %d. waits for ever", n)
		}
	}
}
