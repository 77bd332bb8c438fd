package container

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// execution implements run.Execution in sandboxes.
type execution struct {
	*run.Run
	containers *Containers
	program    program
	saved      saved
	attempt    *attempt // the newest; nil where there is none to hand
	talk       *talk    // of a session; nil: nobody talks with its program
	patch      *patch   // what its image lacks of the unit; nil: nothing
	card       *au.Card // of an Agentic Unit, when it has been read

	begun     bool          // the engine was asked for something of this run's
	uncertain bool          // the engine may hold something of it that this process doesn't know
	cold      bool          // no warm sandbox is taken any more
	released  *pool.Sandbox // waits for another run, when it has been stored that it isn't this one's
	absence                 // of the engine
	surprises surprises
	lastLine  atomic.Pointer[string] // of a wrapped agent's log, cut
}

// Log takes a line of the attempt's program.
func (x *execution) Log(line runtime.LogLine) {
	x.count(line)
	x.surprises.note(x.surpriseIn(line.Text))
	x.noteLastLine(line.Text)
	x.Run.Log(line)
}

// saved is what another process needs to resume the run.
type saved struct {
	// Sandboxes are the warm sandboxes that attempts acquired, by number of attempt. A
	// negative number marks a sandbox that was given up and has yet to be removed.
	Sandboxes map[int]string `json:"sandboxes,omitempty"`
	Slot      pool.ReuseSlot `json:"slot,omitzero"`
	// Refused counts the lines in the attempt's log that a warm sandbox wrote before it was
	// given up.
	Refused run.Lines `json:"refused,omitzero"`
}

// Attempt implements run.Execution.
func (x *execution) Attempt(ctx context.Context) (run.Result, error) {
	x.surprises.forget()
	result, err := x.outlast(ctx, x.carryOut)
	if err != nil && !errors.Is(err, runtime.ErrDetach) {
		x.uncertain = x.begun
	}
	return result, err
}

// Resume implements run.Execution: open finds what an earlier process left. A session ended
// with that.
func (x *execution) Resume(ctx context.Context) (run.Result, error) {
	if _, talks := x.program.(mcpServer); talks {
		return cutOff("the session was cut off when the server process ended"), nil // its client is gone
	}
	return x.Attempt(ctx)
}

// carryOut starts the attempt's container or adopts an existing one, waits for its end and
// takes the result.
func (x *execution) carryOut(ctx context.Context) (run.Result, error) {
	end, err := x.openAndWait(ctx)
	if err == nil && x.attempt.neverStarted(end) {
		if err = x.refuseWarm(ctx); err == nil {
			end, err = x.openAndWait(ctx)
		}
	}
	var unbegun interface{ result() run.Result } // of a run whose program never began
	if errors.As(err, &unbegun) {
		return unbegun.result(), nil
	}
	if err != nil {
		return run.Result{}, err
	}
	x.attempt.removeAhead(ctx)
	_, span := startSpan(ctx, "collect")
	defer span.End()
	defer x.learn()
	if x.attempt.ending == posted {
		if x.attempt.layout, err = x.attempt.layout.TakeOutput(); err != nil {
			return run.Result{}, err
		}
	}
	defer x.attempt.awaitLog(ctx) // meanwhile it has come
	result, err := x.classify(ctx, end)
	if err != nil {
		return result, err
	}
	return x.takeChanges(ctx, result, x.attempt.layout, x.attempt.limits)
}

func (x *execution) openAndWait(ctx context.Context) (runtime.End, error) {
	if err := x.open(ctx); err != nil {
		return runtime.End{}, err
	}
	if x.attempt.sandbox.Running() {
		x.waits = time.Now()
	}
	ctx, span := startSpan(ctx, "wait")
	defer span.End()
	end, err := x.attempt.wait(ctx)
	if x.entersAgain(ctx, err) {
		x.keepAPI(x.attempt.api)
		return end, err
	}
	x.attempt.leaveAPI(whyCallsEnd(err))
	if !errors.Is(err, runtime.ErrDetach) {
		x.noteCalls(x.attempt.api)
	}
	return end, err
}

// whyCallsEnd returns the reason with which the calls of an attempt end. err is the attempt's
// error.
func whyCallsEnd(err error) error {
	if errors.Is(err, runtime.ErrDetach) {
		return err
	}
	return run.ErrCallerEnded
}

// learn gives the pool the observation of a run that has ended.
func (x *execution) learn() {
	seen := pool.Observation{Asked: x.program.loadsAhead() && !getsSecrets(x.Unit) && x.attempt.api.asked()}
	if usage := x.Record.Usage; usage != nil {
		seen.MemoryBytes = usage.PeakMemoryBytes
	}
	x.containers.pool.Learn(x.Unit, seen)
}

// Discard implements run.Execution.
func (x *execution) Discard(ctx context.Context) {
	x.discard(ctx)
	x.saved.Refused = run.Lines{}
	x.uncertain = x.begun
}

// discard removes the attempt's container, and reports whether it is gone.
func (x *execution) discard(ctx context.Context) bool {
	if x.attempt == nil {
		return false
	}
	if x.attempt.ending == posted {
		x.attempt.api.close(run.ErrCallerEnded)
	}
	err := x.attempt.remove(ctx)
	x.attempt = nil
	return err == nil
}

// Remove implements run.Execution. If the engine didn't answer a request, it may have created
// a container since then: those are removed by their labels.
func (x *execution) Remove(ctx context.Context) error {
	gone := x.releaseSandbox(ctx)
	retried, left := len(x.Record.Attempts) > 0, x.saved.Sandboxes[-x.Run.Attempt] != ""
	if x.begun && (!gone && !x.discard(ctx) || x.uncertain || retried || left) {
		if err := x.removeOthers(ctx, 0); err != nil {
			x.uncertain = true
			return err
		}
	}
	x.forget()
	return nil
}

// Release implements run.Execution.
func (x *execution) Release() {
	if a := x.attempt; a != nil {
		if a.ending == posted {
			a.api.close(runtime.ErrDetach)
		}
		a.sandbox.Release()
	}
	x.forget()
}

// forget tells the pool that the run no longer uses its sandboxes.
func (x *execution) forget() {
	for _, id := range x.saved.Sandboxes {
		x.containers.pool.Forget(id)
	}
}
