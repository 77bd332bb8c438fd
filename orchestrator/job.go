package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/inputs"
	"github.com/agent-on-demand/aod/orchestrator/outputs"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/runlog"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/turns"
	"github.com/agent-on-demand/aod/runtime"
)

// job is a run that this process leads, from its acceptance until it is cleaned up. One
// goroutine does all the work, in drive. The job has no state but the run's: see run.State.
type job struct {
	*run.Run
	loop          *loop
	execution     run.Execution
	terms         run.Terms
	given         inputs.Given
	rewound       *rewound      // where it began; nil: at its start
	permit        *queue.Permit // nil while it neither waits in the queue nor runs
	unrecoverable error         // why this process can't go on with it; nil if it can
	asked         error         // why it is to end, if an earlier process was asked for that
	fault         error         // with which the last attempt ended; nil: with an outcome
	log           *runlog.File
	parts         []feature.Part // of the features, in their order
	traceParent   string         // of the run's own span, for the runs that it calls; "" for none
	turn          *turns.Turn    // of a session; nil: of none, or of one for this turn alone
	deferred      store.Deferred // is stored with the next transition

	//nolint:containedctx // the lifetime of the run in this process, which is longer than any call
	life   context.Context
	cancel context.CancelCauseFunc
	live   *records.Live

	said atomic.Pointer[handoff.Progress] // the newest that its program says of itself; nil: nothing yet
}

// drive leads the run from its current state to its end. It returns early when this process
// detaches from its runs: the next process goes on then.
func (j *job) drive() {
	defer j.loop.retire(j)
	defer j.turn.Leave()
	defer j.log.Close()
	ctx, span := j.startSpan()
	defer j.endSpan(span)
	if j.Record.Outcome == "" {
		if err := j.runToOutcome(ctx); err != nil {
			j.release(err)
			return
		}
		j.turn.CloseIfOver()
		j.loop.countEnd(j)
		j.publishOutcome()
	}
	if err := j.finalise(context.WithoutCancel(ctx)); err != nil {
		j.release(err)
		return
	}
	j.passSlot()
	j.loop.logger.Info("run finished", "run", j.ID, "outcome", j.Record.Outcome, "total_ms", j.Record.Timings.Total)
}

// eachPart calls a method of the part of each feature, in the order in which they joined.
func (j *job) eachPart(do func(feature.Part)) {
	for _, part := range j.parts {
		do(part)
	}
}

// publishOutcome gives the outcome to everybody who waits for it.
func (j *job) publishOutcome() {
	j.live.Outcome.Set(j.Record)
}

// runToOutcome makes attempts and stores the outcome. It returns an error only when this
// process has to stop.
func (j *job) runToOutcome(ctx context.Context) error {
	bounded, stop := j.Lineage.Bound(ctx)
	result, err := j.attempts(bounded)
	stop()
	if err != nil {
		return err
	}
	j.loop.endCalls(j.ID, run.ErrCallerEnded) // also those of an earlier process's attempt
	j.noteCalls(ctx)
	j.eachPart(feature.Part.Conclude)
	j.EndLog()
	j.noteLog()
	if err := j.loop.closeQuestions(ctx, j.Run); err != nil {
		return err
	}
	return j.End(outputs.Sync(ctx, j.Run, j.loop.home.Runs, outputs.Mask(ctx, j.Run, result)))
}

// noteLog warns once of a log that could not be written.
func (j *job) noteLog() {
	if err := j.log.Err(); err != nil {
		j.loop.logger.Warn("log of a run not written", "run", j.ID, fault.LogAttr(err))
		j.Warn("the run's log lacks lines, its file could not be written: %s", safefs.Reason(err))
	}
}

// release gives up the run, which the next process goes on with.
func (j *job) release(err error) {
	if !errors.Is(err, runtime.ErrDetach) {
		j.loop.logger.Error("run is left to the next start", "run", j.ID, fault.LogAttr(err))
	}
	j.loop.jobs.leave(j.ID)
	j.execution.Release()
	j.leaveSlot()
}

// leaveSlot gives up the slot or the place in the queue, if there is one.
func (j *job) leaveSlot() {
	if j.permit != nil {
		j.permit.Leave()
		j.permit = nil
	}
}

// attempts makes attempts until one has a result that isn't retried. It returns an error
// only when this process has to stop.
func (j *job) attempts(ctx context.Context) (run.Result, error) {
	for j.unrecoverable == nil {
		j.Attempt = len(j.Record.Attempts) + 1
		result, err := j.tryOnce(ctx)
		if err != nil || !j.shouldRetry(result) {
			return result, err
		}
		if err := j.recordFailure(ctx, result); err != nil {
			return result, err
		}
		if err := j.waitToRetry(ctx); err != nil {
			return run.Stopped(nil, err), detached(ctx, err)
		}
	}
	return run.Unrecoverable(j.unrecoverable), nil
}

// shouldRetry reports whether the run gets another attempt (specification "Agent Wrapper", Retry Logic).
func (j *job) shouldRetry(result run.Result) bool {
	if result.Failure == nil || result.Failure.Category != api.CategoryTransient {
		return false
	}
	lost := 0
	for _, attempt := range j.Record.Attempts {
		if attempt.Error != nil && attempt.Error.Kind == api.KindWorkerLost {
			lost++
		}
	}
	switch result.Failure.Kind {
	case api.KindQueueTimeout:
		return false
	case api.KindWorkerLost:
		return lost < lostAttempts
	}
	return len(j.Record.Attempts)-lost < j.terms.Retries
}

// lostAttempts is how often a run is tried again because the machine that had it was lost: that counts apart from what
// its unit asks for.
const lostAttempts = 3

// recordFailure adds a failed attempt to the record and discards it. What can't be removed
// now is removed before the next attempt, or at the end.
func (j *job) recordFailure(ctx context.Context, result run.Result) error {
	result = j.MaskedResult(result)
	j.execution.Discard(ctx)
	j.EndLog()
	j.loop.endCalls(j.ID, run.ErrCallerEnded)
	j.eachPart(feature.Part.Again)
	if err := safefs.RemoveTree(j.OutputDir()); err != nil {
		j.loop.logger.Warn("output of a failed attempt not removed", "run", j.ID, fault.LogAttr(err))
	}
	attempt := api.Attempt{
		Number: j.Attempt, Outcome: result.Outcome, ExitCode: result.ExitCode, Error: result.Failure,
		Usage: j.Record.Usage, FinishedAt: time.Now().UTC(),
	}
	j.Record.Attempts = append(j.Record.Attempts, attempt)
	j.Record.Retries, j.Record.Usage = len(j.Record.Attempts), nil
	j.deferred.Add(store.Waiting{Events: stored(run.Event{Attempt: &attempt, Delay: j.retryDelay()})})
	j.loop.metrics.RunRetried(j.Record.Unit)
	return j.Enter(api.Failed, result.Reason())
}

// retryDelay returns the wait before the next attempt. It doubles with each failed attempt.
func (j *job) retryDelay() time.Duration {
	return j.loop.opts.RetryDelay << min(len(j.Record.Attempts)-1, 16)
}

// waitToRetry waits before the next attempt. Its error is the reason to end the run.
func (j *job) waitToRetry(ctx context.Context) error {
	ctx, stop := j.loop.waiting(ctx)
	defer stop()
	defer j.WaitFor("retry", fmt.Sprintf("an attempt failed, and the next one comes %v after it", j.retryDelay()))()
	return pause.For(ctx, j.retryDelay())
}

// tryOnce makes one attempt while it holds a slot. It returns an error only when this process
// has to stop: a fault of an attempt becomes a result.
func (j *job) tryOnce(ctx context.Context) (run.Result, error) {
	if err := j.takeSlot(ctx); err != nil {
		return j.withoutSlot(err), detached(ctx, err)
	}
	result, err := j.attemptOnce(ctx)
	if errors.Is(err, run.ErrUnplaced) && ctx.Err() == nil {
		j.leaveSlot()
		return j.tryOnce(ctx)
	}
	defer j.leaveSlotUnlessShared()
	if err == nil {
		j.fault = nil
		return result, nil
	}
	if end := detached(ctx, err); end != nil {
		return result, end
	}
	j.noteFault(ctx, err)
	return run.Fault(ctx, err), nil
}

// noteFault logs it, but for the end of the run, which is none.
func (j *job) noteFault(ctx context.Context, err error) {
	j.fault = err
	if ctx.Err() != nil {
		return
	}
	j.loop.logger.Warn("attempt ended with a fault", "run", j.ID, "attempt", j.Attempt, "kind", fault.KindOf(err).
		String(), fault.LogAttr(err))
}

// attemptOnce resumes the attempt of an earlier process, or makes a new one. While that does
// nothing but wait, this goroutine and its small stack are all that is left of it.
func (j *job) attemptOnce(ctx context.Context) (result run.Result, err error) {
	if err := j.given.Check(ctx, j.Run); err != nil {
		return run.Unrecoverable(err), nil
	}
	for {
		run.OnFreshStack(func() { result, err = j.attempt(ctx) })
		var suspended *run.Suspended
		if !errors.As(err, &suspended) {
			return result, err
		}
		if err := suspended.Wait(ctx); err != nil {
			return result, err
		}
	}
}

func (j *job) attempt(ctx context.Context) (run.Result, error) {
	if j.resumes() {
		if err := outputs.RestoreTrueNames(j.Run); err != nil {
			return run.Result{}, run.StorageFault(err)
		}
		return j.execution.Resume(ctx)
	}
	return j.execution.Attempt(ctx)
}

// resumes reports whether the attempt was begun.
func (j *job) resumes() bool { return j.State() == api.Starting || j.State() == api.Running }

// detached returns an error when the process lets its runs go on without it.
func detached(ctx context.Context, err error) error {
	if errors.Is(err, runtime.ErrDetach) || errors.Is(context.Cause(ctx), runtime.ErrDetach) {
		return runtime.ErrDetach
	}
	return nil
}

var errQueueWait = errors.New("waited too long in the queue")

// takeSlot waits until the run has a slot. Its error is the reason why the run gets none.
func (j *job) takeSlot(ctx context.Context) error {
	if j.resumes() {
		return nil // it occupies its slot, and hears of a wish to cancel from its kind
	}
	began := time.Now()
	defer func() {
		j.Record.Timings.Queue += run.Milliseconds(time.Since(began))
		spanOfWait(ctx, began)
	}()
	ctx, stop := j.loop.waiting(ctx)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, j.loop.queueWait(j.Unit), errQueueWait)
	defer cancel()
	if err := j.turn.Await(ctx); err != nil {
		return err
	}
	if j.permit == nil {
		j.permit = j.loop.queue.Reenter(j.loop.place(j))
	}
	err := j.permit.Wait(ctx)
	if err != nil {
		j.permit = nil
		return err
	}
	j.Record.Worker = j.permit.Machine()
	return nil
}

// withoutSlot is the result of a run that got no slot.
func (j *job) withoutSlot(err error) run.Result {
	if !errors.Is(err, errQueueWait) {
		return run.Stopped(nil, err)
	}
	return run.Result{State: api.Failed, Outcome: api.SystemError, Failure: &api.RunError{
		Category: api.CategoryTransient, Kind: api.KindQueueTimeout,
		Message: fmt.Sprintf("the run waited for more than %v for its turn", j.loop.queueWait(j.Unit)),
		Hint: "try again later; the settings `concurrency` and `queue_wait` say how many run and how long " +
			"others wait",
	}}
}

// leaveSlotUnlessShared gives up the slot, unless the sandbox of the attempt is to serve the
// next run of the unit: that one would come too early for it.
func (j *job) leaveSlotUnlessShared() {
	if s, ok := j.execution.(run.Sharer); ok && s.Shares() {
		return
	}
	j.leaveSlot()
}

// passSlot gives a slot that was kept for the sandbox to the next run of the unit.
func (j *job) passSlot() {
	if j.permit != nil {
		j.permit.PassOn()
		j.permit = nil
	}
}

// Calls implements run.Host.
func (j *job) Calls() run.ChildRuns { return newChildRuns(j) }

// Waiting implements run.Host.
func (j *job) Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	return j.loop.waiting(ctx)
}

// Aside implements run.Host.
func (j *job) Aside(ctx context.Context, wait func()) error {
	return j.permit.Aside(ctx, wait)
}

// Logged implements run.Host.
func (j *job) Logged() run.Lines { return j.log.Seen(j.Attempt) }

// CancelRequest implements run.Host.
func (j *job) CancelRequest() error { return j.asked }

// finalise removes everything of the run that isn't kept. It returns an error only when this
// process has to stop.
func (j *job) finalise(ctx context.Context) error {
	j.dropTruth()
	j.execution.Settle(j.loop.life)
	j.EndLog() // of what an earlier process had not read
	if err := j.Enter(api.Cleanup, ""); err != nil {
		return err
	}
	err := j.loop.repeat(j.loop.life, "remove containers", j.ID, func() error { return j.execution.Remove(ctx) })
	switch {
	case err == nil:
		j.finaliseFiles()
	case j.loop.durable:
		return err
	default: // the next process finds the directory and sweeps
		j.warnOfLeftovers(err)
	}
	return j.Enter(api.Idle, "")
}

// warnOfLeftovers warns in the record that something could not be removed, unless AOD's
// fault is the outcome anyway.
func (j *job) warnOfLeftovers(err error) {
	if j.Record.Outcome != api.SystemError && j.Record.Outcome != api.InvalidInput {
		j.Warn("cleaning up: %s", fault.Public(err).Msg)
	}
}

// finaliseFiles moves the attempt's directory away if the request says so, and removes
// everything from the run's directory that isn't kept.
func (j *job) finaliseFiles() {
	if err := errors.Join(j.keep(), keepOnly(j.Dir)); err != nil {
		j.loop.logger.Error("run's directory can't be cleaned", "run", j.ID, fault.LogAttr(err))
	}
}

// keep moves the attempt's directory to a place that no sweep visits.
func (j *job) keep() error {
	if !j.Keep || j.loop.kept == "" {
		return nil
	}
	if _, err := os.Stat(j.AttemptDir()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(j.loop.kept, 0o700); err != nil {
		return fmt.Errorf("keep run directory: %w", err)
	}
	if err := os.Rename(j.AttemptDir(), keptPath(j.loop.kept, j.ID)); err != nil {
		return fmt.Errorf("keep run directory: %w", err)
	}
	return nil
}

// keptAt returns where the attempt's directory was moved; "": it wasn't.
func (j *job) keptAt() string {
	path := keptPath(j.loop.kept, j.ID)
	if _, err := os.Stat(path); !j.Keep || err != nil {
		return ""
	}
	return path
}

// Ask implements run.Host.
func (j *job) Ask(ctx context.Context, q run.Question) (run.Answer, error) {
	return j.People.Ask(ctx, j.Run, j.MaskedQuestion(q))
}

// closeQuestions closes the questions that are open at the end of a run.
func (l *loop) closeQuestions(ctx context.Context, r *run.Run) error {
	if l.questions == nil {
		return nil // nothing was stored
	}
	return l.questions.Close(ctx, r)
}

// dropTruth removes the files with the true input and the true names of the output files when
// nobody will read them any more. What it can't remove goes with the rest of the directory that
// isn't kept.
func (j *job) dropTruth() {
	if !j.Durable {
		return
	}
	if err := errors.Join(inputs.DropTrue(j.Run), outputs.DropTrueNames(j.Run)); err != nil {
		j.loop.logger.Warn("true input or names not removed yet", "run", j.ID, fault.LogAttr(err))
	}
}
