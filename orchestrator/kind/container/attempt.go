package container

import (
	"context"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// attempt is the sandbox of one attempt, with the state that is needed to read its result.
type attempt struct {
	x       *execution
	sandbox *runtime.Sandbox
	layout  runtime.Layout
	limits  runtime.Limits
	log     *runtime.Log
	api     *apiServer
	origin  origin
	ending  ending
	shared  *pool.Sandbox // what it was, where it may serve another run; else nil
	removal *removal      // nil: it has not begun
	exit    *exit         // nil: it has not been told
}

// origin says how the attempt got its sandbox.
type origin uint8

const (
	fresh  origin = iota // it was started for the attempt
	warm                 // it waited for a run, and its program began with this one
	loaded               // it waited, with its program loaded
)

// ending tells how much of the sandbox has ended.
type ending uint8

const (
	running  ending = iota // nothing
	exited                 // the container
	reported               // the program, as the init reported; the container's end is to come
	posted                 // the run, whose result was posted; the program may serve another
)

// wait enters Running and returns the end of the container, which ends by itself, at its time
// limit, or when ctx ends.
func (a *attempt) wait(ctx context.Context) (runtime.End, error) {
	x := a.x
	if x.run.State() != api.Running { // as it is when the container was adopted
		started := a.startedAt().UTC()
		x.run.Record.StartedAt = &started
		if err := x.run.Enter(api.Running, ""); err != nil {
			return runtime.End{}, err
		}
	}
	began := time.Now()
	limited, stop := context.WithTimeoutCause(ctx, a.limits.Timeout-time.Since(*x.run.Record.StartedAt), run.ErrTimeout)
	defer stop()
	defer a.api.endCallsWith(limited)()
	limited, left := x.talk.during(limited, a.log)
	defer left()
	var end runtime.End
	var err error
	a.lending(func() { end, err = a.sandbox.WaitOrPosted(limited, a.api.done()) })
	a.ending = endingOf(end)
	x.run.Record.Timings.Run = run.Milliseconds(time.Since(began))
	if x.entersAgain(ctx, err) {
		return end, err
	}
	if x.talk != nil && errors.Is(err, runtime.ErrUnreachable) {
		x.talk.session.End(fault.Wrap(fault.Unavailable, err, "%s", connectionBroke).WithHint("begin a new session"))
	}
	if a.ending == exited {
		a.x.log.note(a.log)
	}
	if fault.Is(err, fault.NotFound) {
		err = vanished(err)
	}
	return end, err
}

func endingOf(end runtime.End) ending {
	switch {
	case end.Reusable:
		return posted
	case end.Early:
		return reported
	}
	return exited
}

// startedAt returns when the attempt's time began. A warm container ran before that.
func (a *attempt) startedAt() time.Time {
	started := a.sandbox.StartedAt()
	transitions := a.x.run.Record.Transitions
	if began := transitions[len(transitions)-1].At; a.origin != fresh && started.Before(began) {
		return began
	}
	return started
}

// neverStarted reports whether a sandbox ended before its program got the run: a warm one, or one
// whose program waited for its secrets when an earlier process died. The run has had no effect then.
func (a *attempt) neverStarted(end runtime.End) bool {
	return end.Cause == nil && (end.Report.Abandoned || a.origin == loaded && !a.api.asked())
}

// leaveAPI ends the API for the attempt. It closes the API if the container serves no other
// run.
func (a *attempt) leaveAPI(cause error) {
	if a.ending == posted && a.shared != nil && a.api.release(cause) {
		return
	}
	a.shared = nil
	a.api.close(cause)
}

// logTime bounds the wait for the end of a log.
const logTime = 5 * time.Second

// awaitLog returns when all is read that the run wrote, and records it: whoever waits for the run is
// told with its end what the record says later. What another process of the container writes after
// that isn't the run's.
func (a *attempt) awaitLog(ctx context.Context) {
	if a.ending == exited { // its end was read
		return
	}
	whole := a.logEnds()
	for left := entries; left > 0 && !whole && a.isLost(ctx) && a.rejoin(ctx) == nil; left-- {
		whole = a.logEnds()
	}
	a.x.log.note(a.log)
}

// logEnds waits for the end of what the run wrote, and reports whether it came.
func (a *attempt) logEnds() bool {
	over := a.log.Ended()
	if a.ending == posted {
		over = a.log.ShareEnded()
	}
	late := time.NewTimer(logTime)
	defer late.Stop()
	select {
	case <-over:
	case <-a.log.Ended(): // the container broke off, or the connection to the engine
	case <-late.C:
		a.x.run.Warn("the log may lack its end, the engine didn't pass it on in time")
	}
	if a.ending == posted {
		return pause.Over(over)
	}
	return !a.log.Broke()
}

// settle waits for what follows an early end. The result counts, whatever the container did
// afterwards: that is the operator's.
func (a *attempt) settle(ctx context.Context) {
	exit, err := a.settled(context.WithoutCancel(ctx))
	if err = errors.Join(err, exit.Err); err != nil || exit.Code != 0 {
		a.x.machine.logger.Warn("container ended otherwise than its program", "run", a.x.run.ID, "container",
			a.sandbox.ID(), "exit_code", exit.Code, fault.LogAttr(err))
	}
}

// isLost reports whether the connection broke over which the log and the container's end were to
// come. Another process reads on where this one isn't Durable.
func (a *attempt) isLost(ctx context.Context) bool {
	if !a.x.run.Durable || !pause.Over(a.log.Ended()) {
		return false
	}
	_, err := a.settled(context.WithoutCancel(ctx))
	return errors.Is(err, runtime.ErrUnreachable)
}

// rejoin adopts the container of an attempt that has its result, for the rest of its log.
func (a *attempt) rejoin(ctx context.Context) error {
	x := a.x
	a.sandbox.Release()
	a.shared, x.log.again = nil, true
	_ = pause.For(ctx, lookAgain) // an end is seen below
	if _, err := x.machine.await(ctx); err != nil {
		return err
	}
	log := x.log.resumed(a.limits.LogBytes)
	sandbox, err := runtime.Adopt(ctx, x.machine.engine, a.sandbox.ID(),
		runtime.Spec{Limits: a.limits, Durable: true}, a.layout, log)
	if err == nil {
		a.sandbox, a.log, a.exit = sandbox, log, nil
	}
	return err
}

// removal removes the container of an attempt whose program has ended, while the result is
// read: nothing of that is in the container. It is for runs that end with this process. The
// container of a durable run stays until the outcome is stored: it is what another process
// goes on with.
type removal struct {
	over chan struct{} // closed when what follows is known

	exit      runtime.Exit
	unsettled error
	err       error
}

// removeAhead begins the removal, unless the container may be needed again.
func (a *attempt) removeAhead(ctx context.Context) {
	if a.x.run.Durable || a.ending == posted {
		return
	}
	ctx = context.WithoutCancel(ctx)
	r := &removal{over: make(chan struct{})}
	a.removal = r
	go func() { // remove waits for it
		defer close(r.over)
		if a.ending == reported {
			r.exit, r.unsettled = a.sandbox.AwaitExit(ctx)
		}
		r.err = a.sandbox.Remove(ctx)
	}()
}

// exit is a container's own end, or why it isn't known.
type exit struct {
	runtime.Exit
	err error
}

// settled returns the container's own end, after that of its program was reported. The engine tells
// it once.
func (a *attempt) settled(ctx context.Context) (runtime.Exit, error) {
	if a.removal != nil {
		<-a.removal.over
		return a.removal.exit, a.removal.unsettled
	}
	if a.exit == nil {
		end, err := a.sandbox.AwaitExit(ctx)
		a.exit = &exit{end, err}
	}
	return a.exit.Exit, a.exit.err
}

// remove removes the container, or returns when that is done.
func (a *attempt) remove(ctx context.Context) error {
	if a.removal == nil {
		return a.sandbox.Remove(ctx)
	}
	<-a.removal.over
	return a.removal.err
}

// waitFor waits until is returns true, and reports whether it did. It gives up at the limit,
// when the sandbox has ended, or when ctx ends.
func (a *attempt) waitFor(ctx context.Context, limit time.Duration, is func() bool) bool {
	tick := time.NewTicker(reusePoll)
	defer tick.Stop()
	for end := time.Now().Add(limit); !is(); {
		if !a.sandbox.Running() || time.Now().After(end) {
			return false
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

const (
	// askTime bounds the wait until the program asks for another run.
	askTime = 5 * time.Second
	// reusePoll is the interval of checks meanwhile.
	reusePoll = 2 * time.Millisecond
)
