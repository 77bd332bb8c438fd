package container

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	// entries bounds how often in a row an attempt is entered and comes no further: an engine that
	// answers, and breaks off whenever it is asked for this one, may be broken by it.
	entries = 10
	// enginePatience is how long a run at the end of its time still waits for the engine: a program
	// that ended in its time is to have its result.
	enginePatience = time.Minute
)

// absence is what an execution keeps while the engine is away.
type absence struct {
	waits  time.Time    // since when this entry waits for the end of a container that runs; zero: it has none
	again  bool         // its container is to be that of the entry before
	api    *apiServer   // which its program goes on using; nil: none
	log    *runtime.Log // which goes on, where the engine keeps none; else nil
	warned bool         // that it has a gap

	counting sync.Mutex
	lines    run.Lines // of the container, that were taken
}

// count counts a line that was taken, for who reads the log again.
func (a *absence) count(line runtime.LogLine) {
	a.counting.Lock()
	defer a.counting.Unlock()
	if line.Stream == "stdout" {
		a.lines.Stdout++
	} else {
		a.lines.Stderr++
	}
}

// beginsAnew notes that the next container is a new one.
func (x *execution) beginsAnew() {
	x.dropAPI(run.ErrCallerEnded)
	x.counting.Lock()
	defer x.counting.Unlock()
	x.again, x.log, x.lines = false, nil, run.Lines{}
}

// outlast carries an attempt out, and enters it again whenever the engine was away: what goes on
// there is found and adopted, as by the next process after a restart. No attempt is used for it.
func (x *execution) outlast(
	ctx context.Context, carryOut func(context.Context) (run.Result, error),
) (run.Result, error) {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.MaxInterval = lookAgain, 5*time.Second
	for left := entries; ; {
		x.waits = time.Time{}
		result, err := carryOut(ctx)
		if !x.waits.IsZero() && time.Since(x.waits) > lookAgain {
			left = entries
			delays.Reset()
		}
		if left--; left == 0 || !x.entersAgain(ctx, err) {
			return x.given(result, err)
		}
		x.containers.logger.Warn("engine away, attempt is entered again", "run", x.ID, "attempt", x.Run.Attempt,
			fault.LogAttr(err))
		x.letGo()
		_ = pause.For(ctx, delays.NextBackOff()) // an end is seen below
		if err := x.awaitEngine(ctx); err != nil {
			return x.given(result, err)
		}
	}
}

// given returns what became of an attempt. One that waited for the engine to the end of its time
// is out of it, and a session is over whose streams broke.
func (x *execution) given(result run.Result, err error) (run.Result, error) {
	x.dropAPI(whyCallsEnd(err))
	switch {
	case errors.Is(err, run.ErrTimeout):
		x.uncertain = x.begun
		return run.TimedOut(nil, x.limits().Timeout), nil
	case x.talk != nil && x.State() == api.Running && errors.Is(err, runtime.ErrUnreachable):
		x.uncertain = x.begun
		x.noteToolCalls()
		return cutOff(connectionBroke), nil
	}
	return result, err
}

const connectionBroke = "the session was cut off: the connection to the engine broke"

// entersAgain reports whether an error leaves the attempt to be entered again: the engine was away,
// and what goes on there can be adopted. The streams of a session or a shell were its connection,
// and a command whose program doesn't run yet says at once what is wrong.
func (x *execution) entersAgain(ctx context.Context, err error) bool {
	return errors.Is(err, runtime.ErrUnreachable) && ctx.Err() == nil && !x.isTalkedWith() &&
		(x.Durable || x.State() == api.Running)
}

// isTalkedWith reports whether the program's streams are somebody's, not files.
func (x *execution) isTalkedWith() bool {
	_, shell := x.program.(shell)
	return shell || x.talk != nil
}

// letGo gives up what this process holds of the attempt, and nothing of what the engine has.
func (x *execution) letGo() {
	a := x.attempt
	x.attempt, x.uncertain = nil, x.begun
	if a == nil {
		return
	}
	a.sandbox.Release()
	x.again = true
	if !x.Durable {
		x.log = a.log
		x.warnOnce("the connection to the engine broke while the %s ran: the log may lack lines from then",
			x.program.noun())
	}
}

// warnOnce warns of what may happen again.
func (x *execution) warnOnce(format, noun string) {
	if !x.warned {
		x.warned = true
		x.Warn(format, noun)
	}
}

// leave ends the API of a container that could not be had, unless the engine was away: its program
// may run.
func (x *execution) leave(ctx context.Context, a *apiServer, err error) {
	if x.entersAgain(ctx, err) {
		x.keepAPI(a)
		return
	}
	a.close(run.ErrCallerEnded)
}

// keepAPI keeps the capsule API of a program that goes on while the engine is away: its calls are
// under way, and it makes others. The line to an engine elsewhere has gone with that: calls are
// joined by their keys over the next one.
func (x *execution) keepAPI(a *apiServer) {
	if runtime.IsRemote(x.containers.engine) {
		a.close(runtime.ErrDetach)
		return
	}
	x.api = a
}

// takeKept returns the API that was kept; nil: none was.
func (x *execution) takeKept() *apiServer {
	kept := x.api
	x.api = nil
	return kept
}

// dropAPI ends the API that was kept, if nobody took it.
func (x *execution) dropAPI(cause error) { x.takeKept().close(cause) }

// isLost reports whether the connection broke over which the log and the container's end were to
// come. Another process reads on where this one isn't Durable.
func (a *attempt) isLost(ctx context.Context) bool {
	if !a.x.Durable || !pause.Over(a.log.Ended()) {
		return false
	}
	_, err := a.settled(context.WithoutCancel(ctx))
	return errors.Is(err, runtime.ErrUnreachable)
}

// rejoin adopts the container of an attempt that has its result, for the rest of its log.
func (a *attempt) rejoin(ctx context.Context) error {
	x := a.x
	a.sandbox.Release()
	a.shared, x.again = nil, true
	_ = pause.For(ctx, lookAgain) // an end is seen below
	if _, err := x.containers.awaitEngine(ctx); err != nil {
		return err
	}
	log := x.resumedLog(a.limits.LogBytes)
	sandbox, err := runtime.Adopt(ctx, x.containers.engine, a.sandbox.ID(),
		runtime.Spec{Limits: a.limits, Durable: true}, a.layout, log)
	if err == nil {
		a.sandbox, a.log, a.exit = sandbox, log, nil
	}
	return err
}

// awaitEngine waits until the engine answers, and while a program runs no longer than its time.
func (x *execution) awaitEngine(ctx context.Context) error {
	ctx, stop := x.Waiting(ctx)
	defer stop()
	if began := x.Record.StartedAt; x.State() == api.Running && began != nil {
		var end context.CancelFunc
		ctx, end = context.WithTimeoutCause(ctx, max(x.limits().Timeout-time.Since(*began), enginePatience),
			run.ErrTimeout)
		defer end()
	}
	_, err := x.containers.awaitEngine(ctx)
	return err
}

// probeTime bounds one check of whether the engine answers.
const probeTime = 5 * time.Second

// awaitEngine returns what the engine says of itself when it answers, or the cause when ctx ends.
func (c *Containers) awaitEngine(ctx context.Context) (runtime.EngineInfo, error) {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.MaxInterval, delays.RandomizationFactor = lookAgain, time.Second, 0
	info, err := backoff.Retry(ctx, func() (runtime.EngineInfo, error) {
		probe, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		return c.probe(probe)
	}, backoff.WithBackOff(delays), backoff.WithMaxElapsedTime(0))
	if ctx.Err() != nil {
		return info, context.Cause(ctx)
	}
	return info, err
}
