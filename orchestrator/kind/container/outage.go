package container

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

const (
	// entries bounds how often in a row an attempt is entered and comes no further: an engine that
	// answers, and breaks off whenever it is asked for this one, may be broken by it.
	entries = 10
	// enginePatience is how long a run at the end of its time still waits for the engine: a program
	// that ended in its time is to have its result.
	enginePatience = time.Minute
)

// outage has the attempts of a run outlast that the engine is away.
//
// When the engine is away, outage.outlast enters the attempt again: execution.letGo gives up the streams, apis.keep
// keeps the socket. footprint.reconcile asks what the engine has of the run: a container of this attempt is adopted in
// any state, one that is gone makes a failed attempt. Each end waits until apiServer.endCalls has ended the calls.
// attempt.removeAhead removes the container early where no other process would need it.
type outage struct {
	run     *run.Run
	machine *machine
	program program
	waits   time.Time // since when this entry waits for the end of a container that runs; zero: it has none
}

// reentrant is who can enter an attempt again.
type reentrant interface {
	// runAttempt starts what isn't there, or adopts what is, and returns how it ended.
	runAttempt(ctx context.Context) (run.Result, error)
	// entersAgain reports whether an error leaves the attempt to be entered again.
	entersAgain(ctx context.Context, err error) bool
	// letGo gives up what this process holds of the attempt, and nothing of what the engine has.
	letGo()
}

// outlast carries an attempt out, and enters it again whenever the engine was away: what goes on
// there is found and adopted, as by the next process after a restart. No attempt is used for it.
func (o *outage) outlast(ctx context.Context, attempt reentrant) (run.Result, error) {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.MaxInterval = lookAgain, 5*time.Second
	for left := entries; ; {
		o.waits = time.Time{}
		result, err := attempt.runAttempt(ctx)
		if !o.waits.IsZero() && time.Since(o.waits) > lookAgain {
			left = entries
			delays.Reset()
		}
		if left--; left == 0 || !attempt.entersAgain(ctx, err) {
			return result, err
		}
		o.machine.logger.Warn("engine away, attempt is entered again", "run", o.run.ID, "attempt",
			o.run.Attempt, fault.LogAttr(err))
		attempt.letGo()
		_ = pause.For(ctx, delays.NextBackOff()) // an end is seen below
		if err := o.awaitEngine(ctx); err != nil {
			return result, err
		}
	}
}

// awaitEngine waits until the engine answers, and while a program runs no longer than its time.
func (o *outage) awaitEngine(ctx context.Context) error {
	ctx, stop := o.run.Waiting(ctx)
	defer stop()
	defer o.run.WaitFor("engine", "the container engine doesn't answer")()
	if began := o.run.Record.StartedAt; o.run.State() == api.Running && began != nil {
		var end context.CancelFunc
		ctx, end = context.WithTimeoutCause(ctx,
			max(o.program.limits(o.run.Limits).Timeout-time.Since(*began), enginePatience), run.ErrTimeout)
		defer end()
	}
	_, err := o.machine.await(ctx)
	return err
}
