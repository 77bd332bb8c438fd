package container

import (
	"cmp"
	"context"
	"errors"
	"os"
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

// start prepares the attempt's directory and starts its container.
func (x *execution) start(ctx context.Context, image runtime.Image) (*attempt, error) {
	layout, err := x.place(image)
	if err != nil {
		return nil, err
	}
	spec := x.spec(image)
	if err := x.program.prepare(ctx, x, &spec, layout); err != nil {
		return nil, err
	}
	secrets, err := x.secretEnv()
	if err != nil {
		return nil, err
	}
	spec.Park = len(secrets) > 0 && spec.Console == nil
	if spec.Patch, err = x.patch.place(layout.Dir); err != nil {
		return nil, err
	}
	layout = layout.At(x.containers.engine, spec)
	a := &attempt{x: x, layout: layout, limits: spec.Limits, log: runtime.NewLog(spec.Limits.LogBytes, x.Log)}
	if a.api, err = x.openAPI(ctx, layout, spec.Limits); err != nil {
		return nil, err
	}
	a.sandbox, err = x.containers.startSandbox(ctx, spec, layout, a.log)
	if err == nil && spec.Park {
		err = x.begin(ctx, a.sandbox, spec, secrets)
	}
	if err != nil {
		x.leave(ctx, a.api, err)
		return nil, err
	}
	timings := a.sandbox.Timings()
	x.Record.Container = &api.Container{ID: a.sandbox.ID()}
	x.Record.Timings.Create, x.Record.Timings.Start = run.Milliseconds(timings.Create), run.Milliseconds(timings.Start)
	return a, nil
}

// startSandbox starts a sandbox. It bounds how many starts the engine has at once.
func (c *Containers) startSandbox(
	ctx context.Context, spec runtime.Spec, layout runtime.Layout, log *runtime.Log,
) (*runtime.Sandbox, error) {
	if err := c.Confined(ctx); err != nil {
		return nil, err
	}
	if err := acquire(ctx, c.starts); err != nil {
		return nil, err
	}
	defer c.starts.Release(1)
	spec.UID = c.uidOf(ctx, cmp.Or(spec.Session, spec.Run))
	ctx, span := startSpan(ctx, "start")
	defer span.End()
	return runtime.Start(ctx, c.engine, spec, layout, log)
}

// adopted returns the attempt of a container that an earlier process started.
func (x *execution) adopted(ctx context.Context, container string) (*attempt, error) {
	image, err := x.containers.ensureImage(ctx, x.Run)
	if err != nil {
		return nil, err
	}
	if _, err := x.secretEnv(); err != nil { // they are to be hidden; the program has had them
		x.Warn("secrets of the run can't be read any more, and aren't hidden in what it tells from here on")
	}
	spec := x.spec(image)
	log := x.resumedLog(spec.Limits.LogBytes)
	layout := runtime.OpenLayout(x.AttemptDir(), x.InputDir())
	if _, err := os.Stat(x.OutputDir()); err == nil { // the earlier process came as far as that
		layout.Output = x.OutputDir()
	}
	layout = x.withSession(layout)
	x.program.adopt(x, &spec)
	layout = layout.At(x.containers.engine, spec)
	server, err := x.openAPI(ctx, layout, spec.Limits)
	if err != nil {
		return nil, err
	}
	sandbox, err := runtime.Adopt(ctx, x.containers.engine, container, spec, layout, log)
	if err != nil {
		x.leave(ctx, server, err)
		return nil, err
	}
	return &attempt{x: x, sandbox: sandbox, layout: layout, limits: spec.Limits, log: log, api: server}, nil
}

// place prepares the attempt's directory: /io with the input and its files. If a dead process left
// one, nothing was started in it.
func (x *execution) place(image runtime.Image) (runtime.Layout, error) {
	layout, err := x.containers.newLayout(x.AttemptDir(), image, x.InputDir())
	if err != nil {
		return layout, err
	}
	layout = x.withSession(layout)
	return layout, errors.Join(x.makeSession(layout), layout.WriteInput(x.Input.Payload.JSON()))
}

// wait enters Running and returns the end of the container, which ends by itself, at its time
// limit, or when ctx ends.
func (a *attempt) wait(ctx context.Context) (runtime.End, error) {
	x := a.x
	if x.State() != api.Running { // as it is when the container was adopted
		started := a.startedAt().UTC()
		x.Record.StartedAt = &started
		if err := x.Enter(api.Running, ""); err != nil {
			return runtime.End{}, err
		}
	}
	began := time.Now()
	limited, stop := context.WithTimeoutCause(ctx, a.limits.Timeout-time.Since(*x.Record.StartedAt), run.ErrTimeout)
	defer stop()
	defer a.api.endCallsWith(limited)()
	limited, left := x.whileTalking(limited)
	defer left()
	var end runtime.End
	var err error
	a.lending(func() { end, err = a.sandbox.WaitOrPosted(limited, a.api.done()) })
	a.ending = endingOf(end)
	x.Record.Timings.Run = run.Milliseconds(time.Since(began))
	if x.entersAgain(ctx, err) {
		return end, err
	}
	if x.talk != nil && errors.Is(err, runtime.ErrUnreachable) {
		x.talk.session.End(fault.Wrap(fault.Unavailable, err, "%s", connectionBroke).WithHint("begin a new session"))
	}
	if a.ending == exited {
		a.x.noteLog(a.log)
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
	transitions := a.x.Record.Transitions
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

// noteLog records how much the program wrote.
func (x *execution) noteLog(log *runtime.Log) {
	stats := &x.Record.Log
	before := stats.Truncated
	stats.Bytes, stats.Truncated = log.Bytes()
	if stats.Truncated && !before {
		x.Warn("the log was cut: the %s wrote more than its limit (limits.log)", x.program.noun())
	}
}

// noteCalls records what the program asked in vain. It is called when the program can't ask
// any more.
func (x *execution) noteCalls(a *apiServer) {
	for _, warning := range a.handler.Warnings() {
		x.Warn("%s", warning)
	}
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
	a.x.noteLog(a.log)
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
		a.x.Warn("the log may lack its end, the engine didn't pass it on in time")
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
		a.x.containers.logger.Warn("container ended otherwise than its program", "run", a.x.ID, "container",
			a.sandbox.ID(), "exit_code", exit.Code, fault.LogAttr(err))
	}
}

// vanished returns the fault of a container that somebody removed during the run.
func vanished(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the run's container vanished").
		WithHint("somebody removed it from the engine; run it again")
}

// limits returns the limits of the run's attempts.
func (x *execution) limits() runtime.Limits { return x.program.limits(x.Limits) }

func (x *execution) spec(image runtime.Image) runtime.Spec {
	spec := x.containers.spec(x.Unit, x.ID, image)
	spec.Root, spec.Attempt, spec.Durable, spec.Limits = x.Lineage.Root, x.Run.Attempt, x.Durable, x.limits()
	if x.Session != nil {
		spec.Session = x.Session.ID
	}
	return spec
}
