package container

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// execution implements run.Execution in sandboxes.
type execution struct {
	run     *run.Run
	machine *machine
	starter *starter
	images  *imageBuilder
	cards   *cards
	lookups *lookups
	program program
	saved   *saved
	attempt *attempt     // the newest; nil where there is none to hand
	talk    *stdioBridge // of a session; nil: nobody talks with its program
	card    *au.Card     // of an Agentic Unit, when it has been read

	outage    outage
	footprint footprint
	pooled    poolUser
	apis      apis
	log       attemptLog
	hints     *hints
	verdict   verdict
	collector collector
	project   project
	session   sessionState
}

// newExecution returns what makes the attempts of a run, which may have been begun by an earlier
// process.
func newExecution(c *Containers, r *run.Run) *execution {
	m := c.machine
	own := programOfRun(r.Unit, m.extra(r.Extra, r.Unit.Name).Console)
	x := &execution{
		run: r, machine: m, starter: c.starter, images: c.images, cards: c.cards, lookups: c.lookups, program: own,
		saved: &saved{},
		hints: &hints{run: r},
	}
	if raw, ok := r.Saved.(json.RawMessage); ok {
		_ = json.Unmarshal(raw, x.saved) // it was written from the same type
	}
	r.Saved = x.saved
	x.outage = outage{run: r, machine: m, program: own}
	x.pooled = poolUser{run: r, machine: m, pool: c.pool, saved: x.saved}
	begun := r.State() != api.Idle
	x.footprint = footprint{
		run: r, machine: m, saved: x.saved, pooled: &x.pooled, outage: &x.outage, begun: begun, uncertain: begun,
	}
	x.apis = apis{run: r, machine: m, saved: x.saved}
	x.log = attemptLog{run: r, machine: m, program: own, saved: x.saved, hints: x.hints}
	x.verdict = verdict{run: r, machine: m, program: own, saved: x.saved}
	x.collector = collector{run: r}
	x.project = project{run: r, machine: m}
	x.session = sessionState{run: r, project: x.project}
	return x
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
	x.hints.lines.forget()
	result, err := x.given(x.outage.outlast(ctx, x))
	if err != nil && !errors.Is(err, runtime.ErrDetach) {
		x.footprint.doubt()
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

// runAttempt starts the attempt's container or adopts an existing one, waits for its end and
// takes the result.
func (x *execution) runAttempt(ctx context.Context) (run.Result, error) {
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
	x.apis.note(x.attempt.api, result.Failure)
	if err != nil {
		return result, err
	}
	return x.project.takeChanges(ctx, result, x.attempt.layout, x.attempt.limits)
}

func (x *execution) openAndWait(ctx context.Context) (runtime.End, error) {
	if err := x.open(ctx); err != nil {
		return runtime.End{}, err
	}
	if x.attempt.sandbox.Running() {
		x.outage.waits = time.Now()
	}
	ctx, span := startSpan(ctx, "wait")
	defer span.End()
	end, err := x.attempt.wait(ctx)
	if x.entersAgain(ctx, err) {
		x.apis.keep(x.attempt.api)
		return end, err
	}
	x.attempt.leaveAPI(whyCallsEnd(err))
	if err != nil && !errors.Is(err, runtime.ErrDetach) {
		x.apis.note(x.attempt.api, nil)
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
	seen := pool.Observation{Asked: x.program.loadsAhead() && !getsSecrets(x.run.Unit) && x.attempt.api.asked()}
	if usage := x.run.Record.Usage; usage != nil {
		seen.MemoryBytes = usage.PeakMemoryBytes
	}
	x.pooled.pool.Learn(x.run.Unit, seen)
}

// Discard implements run.Execution.
func (x *execution) Discard(ctx context.Context) {
	x.discard(ctx)
	x.saved.Refused = run.Lines{}
	x.footprint.doubt()
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
	gone := x.pooled.giveBack(ctx)
	if gone {
		x.attempt = nil
	}
	retried, left := len(x.run.Record.Attempts) > 0, x.saved.Sandboxes[-x.run.Attempt] != ""
	if x.footprint.begun && (!gone && !x.discard(ctx) || x.footprint.uncertain || retried || left) {
		if err := x.footprint.removeOthers(ctx, 0); err != nil {
			x.footprint.uncertain = true
			return err
		}
	}
	x.pooled.forget()
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
	x.pooled.forget()
}

// Settle implements run.Execution. It prepares a sandbox that may serve another run; Remove
// gives it back to the pool.
func (x *execution) Settle(ctx context.Context) {
	a := x.attempt
	if a == nil {
		if x.footprint.uncertain && x.run.State() != api.Cleanup {
			x.log.readLast(ctx)
		}
		return
	}
	switch a.ending {
	case reported:
		x.pooled.pool.AwaitLull(ctx)
		a.settle(ctx)
	case posted:
		x.settlePosted(ctx)
	}
}

func (x *execution) settlePosted(ctx context.Context) {
	a := x.attempt
	if !pause.Over(a.log.ShareEnded()) || a.shared == nil || x.run.Record.Outcome != api.Success {
		return
	}
	if err := x.pooled.reset(ctx, a); err != nil {
		x.machine.logger.Warn("container not used again", "run", x.run.ID, "container", a.sandbox.ID(),
			fault.LogAttr(err))
		return
	}
	x.pooled.released = a.shared
}

// Shares implements run.Sharer.
func (x *execution) Shares() bool {
	a := x.attempt
	return a != nil && a.ending == posted && a.shared != nil
}

// classify decides what the end of the sandbox means, and collects the result of a program
// that ended well. Its error is a fault of AOD.
func (x *execution) classify(ctx context.Context, end runtime.End) (run.Result, error) {
	limits := x.attempt.limits
	x.verdict.measure(end)
	x.noteProgram(end)
	x.talk.note(x.run)
	var over *runtime.LimitError
	if end.ExitCode == exitFileSize && errors.As(end.Cause, &over) {
		end.Cause = nil // the kernel came first, and knows better what went over
	}
	if errors.Is(end.Cause, errSessionOver) {
		return x.program.collect(ctx, x, end)
	}
	if result, ok := stopped(end, limits); ok {
		x.hints.hintAtPrompt(result.Failure, limits.Timeout, x.attempt.layout)
		hintAtLog(result.Failure, x.attempt.log.Waited(), limits.Timeout)
		return result, nil
	}
	if end.Outside && x.verdict.ranFor(end) >= limits.Timeout { // an earlier process stopped it, and died meanwhile
		return run.TimedOut(&end.ExitCode, limits.Timeout), nil
	}
	if result, ok := x.verdict.died(end, limits); ok {
		return result, nil
	}
	began := time.Now()
	defer func() { x.run.Record.Timings.Collect = run.Milliseconds(time.Since(began)) }()
	result, err := x.program.collect(ctx, x, end)
	if err == nil && x.verdict.metFullDisk() {
		return x.verdict.afterFullDisk(end, result), nil
	}
	if result.Outcome == api.CapsuleError {
		x.hints.explain(result.Failure, end.ExitCode)
	}
	return result, err
}

// noteProgram remembers whether the program of a wrapped agent was in its image.
func (x *execution) noteProgram(end runtime.End) {
	if _, is := x.program.(wrappedAgent); is { // and no shell in its place
		x.lookups.note(x.run.Unit, x.run.Record.Image.Ref, x.run.Start, end)
	}
}

// given returns what became of an attempt. One that waited for the engine to the end of its time
// is out of it, and a session is over whose streams broke.
func (x *execution) given(result run.Result, err error) (run.Result, error) {
	x.apis.drop(whyCallsEnd(err))
	switch {
	case errors.Is(err, run.ErrTimeout):
		x.footprint.doubt()
		return run.TimedOut(nil, x.limits().Timeout), nil
	case x.talk != nil && x.run.State() == api.Running && errors.Is(err, runtime.ErrUnreachable):
		x.footprint.doubt()
		x.talk.note(x.run)
		return cutOff(connectionBroke), nil
	}
	return result, err
}

const connectionBroke = "the session was cut off: the connection to the engine broke"

// entersAgain implements reentrant: an attempt is entered again when the engine was away,
// and what goes on there can be adopted. The streams of a session or a shell were its connection,
// and a command whose program doesn't run yet says at once what is wrong.
func (x *execution) entersAgain(ctx context.Context, err error) bool {
	return errors.Is(err, runtime.ErrUnreachable) && ctx.Err() == nil && !x.isTalkedWith() &&
		(x.run.Durable || x.run.State() == api.Running)
}

// isTalkedWith reports whether the program's streams are somebody's, not files.
func (x *execution) isTalkedWith() bool {
	_, shell := x.program.(shell)
	return shell || x.talk != nil
}

// letGo implements reentrant.
func (x *execution) letGo() {
	a := x.attempt
	x.attempt = nil
	x.footprint.doubt()
	if a == nil {
		return
	}
	a.sandbox.Release()
	x.log.keep(a.log)
}

// leave ends the API of a container that could not be had, unless the engine was away: its program
// may run.
func (x *execution) leave(ctx context.Context, a *apiServer, err error) {
	if x.entersAgain(ctx, err) {
		x.apis.keep(a)
		return
	}
	a.close(run.ErrCallerEnded)
}

// limits returns the limits of the run's attempts.
func (x *execution) limits() runtime.Limits { return x.program.limits(x.run.Limits) }

// vanished returns the fault of a container that somebody removed during the run.
func vanished(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the run's container vanished").
		WithHint("somebody removed it from the engine; run it again")
}
