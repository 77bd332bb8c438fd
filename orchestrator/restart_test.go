package orchestrator

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/runtime"
)

func TestAServiceGoesOnWithAKindsRuns(t *testing.T) {
	t.Parallel()
	t.Run("that runs", func(t *testing.T) {
		gate, s := make(chan struct{}), &stage{}
		s.attempt = func(ctx context.Context, a *actor) (run.Result, error) {
			if a.resumed {
				var saved map[string]int
				if raw, ok := a.Saved.(json.RawMessage); !ok || json.Unmarshal(raw, &saved) != nil || saved["n"] != 7 {
					t.Errorf("what was saved: %v", a.Saved)
				}
				return a.waits(ctx, gate)
			}
			a.Saved = map[string]int{"n": 7}
			return a.waits(ctx, nil)
		}
		p := newPlays(t, s)
		id := p.submit()
		p.until(id, running)
		p.stop()
		wantCalls(t, s, id, "attempt release")
		p.start()
		close(gate)
		record := p.await(id)
		wantCalls(t, s, id, "attempt release resume settle remove")
		wantStates(t, record, "idle starting running completed cleanup idle")
		if record.Outcome != api.Success || record.Retries != 0 {
			t.Errorf("record %s", show(record))
		}
	})
	t.Run("that waits for its turn", func(t *testing.T) {
		gate, s := make(chan struct{}), &stage{}
		s.attempt = func(ctx context.Context, a *actor) (run.Result, error) { return a.waits(ctx, gate) }
		p := newPlays(t, s, func(o *Options) { o.Concurrency = 1 })
		first := p.submit()
		p.until(first, running)
		second := p.submit()
		p.stop()
		p.start()
		close(gate)
		p.await(first)
		record := p.await(second)
		wantCalls(t, s, second, "release attempt settle remove")
		wantStates(t, record, "idle starting running completed cleanup idle")
	})
	t.Run("that waits for its next attempt", func(t *testing.T) {
		s := &stage{}
		s.attempt = func(_ context.Context, a *actor) (run.Result, error) {
			if a.Run.Attempt == 1 {
				return a.fails(api.CategoryTransient)
			}
			return a.succeed()
		}
		p := newPlays(t, s, func(o *Options) { o.RetryDelay = time.Hour })
		id := p.submit()
		p.until(id, func(r api.Record) bool {
			return len(r.Attempts) == 1 && r.Waiting != nil && strings.Contains(r.Waiting.Message, "1h0m0s after it")
		})
		p.stop()
		p.opts.RetryDelay = time.Millisecond
		p.start()
		record := p.await(id)
		wantCalls(t, s, id, "attempt discard release attempt settle remove")
		if record.Outcome != api.Success || record.Retries != 1 || record.Waiting != nil {
			t.Errorf("record %s", show(record))
		}
	})
	t.Run("that is to be cleaned up, and makes no attempt again", func(t *testing.T) {
		s := &stage{remove: func(*actor) error { return errAway }}
		p := newPlays(t, s)
		id := p.submit()
		record := p.until(id, func(r api.Record) bool { return r.Outcome != "" })
		if record.Outcome != api.Success {
			t.Errorf("record %s", show(record))
		}
		within(t, func() bool { return strings.HasSuffix(s.calls(id), "remove") }, func() string { return s.calls(id) })
		p.stop()
		s.mu.Lock()
		s.remove, s.asked = nil, nil
		s.mu.Unlock()
		p.start()
		record = p.await(id)
		wantCalls(t, s, id, "settle remove")
		if record.Outcome != api.Success || record.State != api.Completed {
			t.Errorf("record %s", show(record))
		}
	})
	t.Run("that was to be cancelled", func(t *testing.T) {
		s := &stage{}
		s.attempt = func(ctx context.Context, a *actor) (run.Result, error) {
			if a.resumed && (a.CancelRequest() == nil || a.CancelRequest().Error() != "because") {
				t.Errorf("cancel request %v", a.CancelRequest())
			}
			return a.waits(ctx, nil)
		}
		p := newPlays(t, s)
		id := p.submit()
		p.until(id, running)
		p.stop()
		service, err := NewService(p.opts) // it dies between storing a wish and acting on it
		if err != nil {
			t.Fatal(err)
		}
		if err := service.store.Events.Append(trusted.Context(t), id, newEvent(time.Now(), api.CancelEvent{Reason: "because"})); err != nil {
			t.Fatal(err)
		}
		if err := service.Close(); err != nil {
			t.Fatal(err)
		}
		p.start()
		record := p.await(id)
		wantCalls(t, s, id, "attempt release resume settle remove")
		if record.Outcome != api.WasCancelled || !strings.Contains(record.Error.Message, "because") {
			t.Errorf("record %s", show(record))
		}
	})
	t.Run("whose kind is gone, and which fails", func(t *testing.T) {
		s := &stage{}
		s.attempt = func(ctx context.Context, a *actor) (run.Result, error) { return a.waits(ctx, nil) }
		p := newPlays(t, s)
		id := p.submit()
		p.until(id, running)
		p.stop()
		p.opts.Kinds = run.Kinds{"another": &stage{}}
		p.start()
		record := p.await(id)
		wantCalls(t, s, id, "attempt release")
		if record.Outcome != api.SystemError || record.Error.Kind != "unsupported" || !strings.Contains(record.Error.Message, "can't go on after a restart") || record.Error.Category != api.CategoryPermanent {
			t.Errorf("record %s", show(record))
		}
		keepsSchema(t, record)
	})
}

func TestAServiceRemovesUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := &stage{remove: failing(2, errAway)}
	s.settle = func(a *actor) { a.Warn("said while it settles") }
	p := newPlays(t, s)
	id := p.submit()
	record := p.await(id)
	wantCalls(t, s, id, "attempt settle remove remove remove") //nolint:dupword // it failed twice
	wantStates(t, record, "idle starting running completed cleanup idle")
	if record.Outcome != api.Success || hasWarning(record, "cleaning up") || !hasWarning(record, "settles") {
		t.Errorf("record %s", show(record))
	}
	if exists(p.service.runPath(id), "[0-9]*") {
		t.Error("the attempt's directory is left")
	}
}

func TestADrainWaitsForARunAndAShutdownDoesNot(t *testing.T) {
	t.Parallel()
	gate, s := make(chan struct{}), &stage{}
	s.attempt = func(ctx context.Context, a *actor) (run.Result, error) { return a.waits(ctx, gate) }
	p := newPlays(t, s)
	id := p.submit()
	p.until(id, running)
	ctx, cancel := context.WithCancel(trusted.Context(t))
	done := make(chan struct{})
	go func() { p.service.Shutdown(ctx, true); close(done) }()
	within(t, func() bool { return p.service.Admits(trusted.Context(p.t)) != nil }, func() string { return "it goes on admitting" })
	if _, _, err := p.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker"}); err == nil {
		t.Error("a run is admitted while the service stops")
	}
	if pause.Over(done) {
		t.Error("it doesn't wait for the run")
	}
	cancel() // its patience is over
	<-done
	wantCalls(t, s, id, "attempt release")
	p.stop()
	p.start()
	close(gate)
	if record := p.await(id); record.Outcome != api.Success {
		t.Errorf("record %s", show(record))
	}
}

func TestWhatWaitsHearsThatNothingNewIsToBegin(t *testing.T) {
	t.Parallel()
	heard, s := make(chan error, 1), &stage{}
	s.attempt = func(ctx context.Context, a *actor) (run.Result, error) {
		if err := a.begin(); err != nil || a.resumed {
			return a.succeed()
		}
		waiting, stop := a.Waiting(ctx)
		defer stop()
		<-waiting.Done()
		heard <- context.Cause(waiting)
		return run.Result{}, context.Cause(waiting)
	}
	p := newPlays(t, s)
	id := p.submit()
	p.until(id, running)
	p.service.Shutdown(trusted.Context(t), false) // its patience doesn't end
	if err := <-heard; err == nil || err.Error() != runtime.ErrDetach.Error() {
		t.Errorf("heard %v", err)
	}
	p.stop()
	p.start()
	if record := p.await(id); record.Outcome != api.Success {
		t.Errorf("record %s", show(record))
	}
}

func TestARunThatWaitsTooLongIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	gate, s := make(chan struct{}), &stage{}
	s.attempt = func(ctx context.Context, a *actor) (run.Result, error) { return a.waits(ctx, gate) }
	p := newPlays(t, s, func(o *Options) { o.Concurrency = 1 })
	first := p.submit()
	p.until(first, running)
	p.stop()
	p.opts.QueueWait = 200 * time.Millisecond // only now: the first one needs its time for a free slot, too
	p.start()
	second := p.submit()
	record := p.await(second)
	if record.Outcome != api.SystemError || record.Error.Kind != api.KindQueueTimeout || record.Error.Category != api.CategoryTransient || record.Retries != 0 || record.Timings.Queue < 200 {
		t.Errorf("record %s", show(record))
	}
	wantCalls(t, s, second, "settle remove")
	wantStates(t, record, "idle failed cleanup idle")
	close(gate)
	if record := p.await(first); record.Outcome != api.Success {
		t.Errorf("record %s", show(record))
	}
}
