package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/safefs"
)

// job is a run that this process leads, from its acceptance to the end of its cleaning up.
// What it does is done by one goroutine, in drive. Its state is the run's: see run.State.
type job struct {
	*run.Run
	loop      *loop
	execution run.Execution
	private   private
	permit    *queue.Permit // nil while it neither waits in the queue nor runs
	find      finder        // of the units that it may call
	broken    error         // why this process can't go on with it; nil if it can
	asked     error         // why it is to end, if an earlier process was asked for that
	fault     error         // with which the last attempt ended; nil: with an outcome
	keptAt    string        // where the attempt's directory was kept
	log       *logFile
	pending   []run.Event // to be stored with the next transition

	life    context.Context // of the run in this process
	cancel  context.CancelCauseFunc
	ended   chan struct{} // closed when the outcome is stored
	outcome api.Record    // what is stored with it; set before
	gone    chan struct{} // closed when this process has nothing more to do with it
	news    notifier      // of events and log lines
}

// private is what another process has to know of a run, and nobody is told.
type private struct {
	Timeout     time.Duration `json:"timeout,omitempty"`
	Retries     int           `json:"retries"` // how many there may be
	Concurrency int           `json:"concurrency,omitempty"`
	TraceParent string        `json:"traceparent,omitempty"`

	Path     []handoff.Step `json:"path,omitempty"` // see run.Lineage
	Deadline time.Time      `json:"deadline,omitzero"`

	Kind json.RawMessage `json:"kind,omitempty"` // see run.Run.Saved
}

// drive leads the run from the state in which it is to its very end. It returns early
// when the process detaches: then the next one goes on.
func (j *job) drive() {
	defer j.loop.retire(j)
	defer j.log.close()
	ctx, span := tracer.Start(withRemoteParent(j.life, j.private.TraceParent), "run",
		trace.WithAttributes(attribute.String("aod.run", j.ID), attribute.String("aod.unit", j.Record.Unit)))
	defer span.End()
	if j.Record.Outcome == "" {
		if j.conclude(ctx) != nil {
			j.release()
			return
		}
		j.loop.concluded(j)
		j.hasOutcome()
	}
	if j.clean(context.WithoutCancel(ctx)) != nil {
		j.release()
		return
	}
	j.loop.logger.Info("run finished", "run", j.ID, "outcome", j.Record.Outcome, "total_ms", j.Record.Timings.Total)
}

// hasOutcome answers whoever waits for the outcome.
func (j *job) hasOutcome() {
	j.outcome = j.Record
	close(j.ended)
}

// conclude makes attempts and stores the outcome. Its error is the process's end.
func (j *job) conclude(ctx context.Context) error {
	bounded, stop := j.Lineage.Bound(ctx)
	result, err := j.attempts(bounded)
	stop()
	if err != nil {
		return err
	}
	j.loop.endCalls(j.ID, run.ErrCallerEnded) // also those of an earlier process's attempt
	j.noteCalls(ctx)
	return j.End(result)
}

// release lets go of what goes on without us.
func (j *job) release() {
	j.execution.Release()
	if j.permit != nil {
		j.permit.Leave()
	}
}

// attempts tries until there is a result that stays. Its error is the process's end.
func (j *job) attempts(ctx context.Context) (run.Result, error) {
	for j.broken == nil {
		j.Attempt = len(j.Record.Attempts) + 1
		result, err := j.try(ctx)
		if err != nil || !j.again(result) {
			return result, err
		}
		if err := j.giveUp(ctx, result); err != nil {
			return result, err
		}
		if err := j.pause(ctx); err != nil {
			return run.Stopped(nil, err), detached(ctx, err)
		}
	}
	return run.Broken(j.broken), nil
}

// again says whether the run is tried once more (specification "Agent Wrapper", Retry Logic).
func (j *job) again(result run.Result) bool {
	return result.Failure != nil && result.Failure.Category == api.CategoryTransient &&
		result.Failure.Kind != api.KindQueueTimeout && len(j.Record.Attempts) < j.private.Retries
}

// giveUp puts an attempt among the earlier ones. What of it can't be removed now is
// removed before the next one, or at the end.
func (j *job) giveUp(ctx context.Context, result run.Result) error {
	j.execution.Discard(ctx)
	j.loop.endCalls(j.ID, run.ErrCallerEnded)
	if err := safefs.RemoveTree(j.OutputDir()); err != nil {
		j.loop.logger.Warn("output of a failed attempt not removed", "run", j.ID, fault.LogAttr(err))
	}
	attempt := api.Attempt{
		Number: j.Attempt, Outcome: result.Outcome, ExitCode: result.ExitCode, Error: result.Failure,
		Usage: j.Record.Usage, FinishedAt: time.Now().UTC(),
	}
	j.Record.Attempts = append(j.Record.Attempts, attempt)
	j.Record.Retries, j.Record.Usage = len(j.Record.Attempts), nil
	j.pending = append(j.pending, run.Event{Attempt: &attempt, Delay: j.delay()})
	j.loop.metrics.retried(j.Record.Unit)
	return j.Enter(api.Failed, result.Reason())
}

// delay is how long to wait before the attempt after those that failed.
func (j *job) delay() time.Duration {
	return j.loop.opts.RetryDelay << min(len(j.Record.Attempts)-1, 16)
}

// pause waits before the next attempt. Its error is why the run shall not go on.
func (j *job) pause(ctx context.Context) error {
	ctx, stop := j.loop.waiting(ctx)
	defer stop()
	timer := time.NewTimer(j.delay())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// try makes one attempt while it holds a slot. Its error is the process's end; all
// else is a result.
func (j *job) try(ctx context.Context) (run.Result, error) {
	if err := j.takeSlot(ctx); err != nil {
		return j.unserved(err), detached(ctx, err)
	}
	defer j.leaveSlot()
	result, err := j.attemptOnce(ctx)
	if err == nil {
		j.fault = nil
		return result, nil
	}
	if end := detached(ctx, err); end != nil {
		return result, end
	}
	j.fault = err
	j.loop.logger.Warn("attempt ended with a fault", "run", j.ID, "attempt", j.Attempt, "kind", fault.KindOf(err).String(), fault.LogAttr(err))
	return run.Fault(ctx, err), nil
}

// attemptOnce goes on with the attempt that an earlier process began, or makes a new one.
func (j *job) attemptOnce(ctx context.Context) (run.Result, error) {
	switch j.State() {
	case api.Starting, api.Running:
		return j.execution.Resume(ctx)
	}
	return j.execution.Attempt(ctx)
}

// detached returns an error when the process lets its runs go on without it.
func detached(ctx context.Context, err error) error {
	if errors.Is(err, runtime.ErrDetach) || errors.Is(context.Cause(ctx), runtime.ErrDetach) {
		return runtime.ErrDetach
	}
	return nil
}

var errQueueWait = errors.New("waited too long in the queue")

// takeSlot waits for the run's turn. Its error is why that doesn't come.
func (j *job) takeSlot(ctx context.Context) error {
	if j.permit == nil {
		j.permit = j.loop.queue.Reenter(j.Record.Unit, j.private.Concurrency)
	}
	began := time.Now()
	defer func() { j.Record.Timings.Queue += run.Milliseconds(time.Since(began)) }()
	ctx, stop := j.loop.waiting(ctx)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, j.loop.opts.QueueWait, errQueueWait)
	defer cancel()
	err := j.permit.Wait(ctx)
	if err != nil {
		j.permit = nil
	}
	return err
}

// unserved is the result of a run whose turn didn't come.
func (j *job) unserved(err error) run.Result {
	if !errors.Is(err, errQueueWait) {
		return run.Stopped(nil, err)
	}
	return run.Result{State: api.Failed, Outcome: api.SystemError, Failure: &api.RunError{
		Category: api.CategoryTransient, Kind: api.KindQueueTimeout,
		Message: fmt.Sprintf("the run waited for more than %v for its turn", j.loop.opts.QueueWait),
		Hint:    "try again later; the settings `concurrency` and `queue_wait` say how many run and how long others wait",
	}}
}

func (j *job) leaveSlot() {
	j.permit.Leave()
	j.permit = nil
}

// Calls implements run.Host.
func (j *job) Calls() run.ChildRuns { return newChildRuns(j) }

// Waiting implements run.Host.
func (j *job) Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	return j.loop.waiting(ctx)
}

// Logged implements run.Host.
func (j *job) Logged() run.Lines { return j.log.seen(j.Attempt) }

// CancelRequest implements run.Host.
func (j *job) CancelRequest() error { return j.asked }

// clean removes what isn't kept of the run. Its error is the process's end.
func (j *job) clean(ctx context.Context) error {
	j.execution.Settle(j.loop.life)
	if err := j.Enter(api.Cleanup, ""); err != nil {
		return err
	}
	err := j.loop.persist("remove containers", j.ID, func() error { return j.execution.Remove(ctx) })
	switch {
	case err == nil:
		j.cleanFiles()
	case j.loop.durable:
		return err
	default: // the directory tells the next process what there is to sweep
		j.leave(err)
	}
	return j.Enter(api.Idle, "")
}

// leave says in the record that something was left behind, where that is not its error.
func (j *job) leave(err error) {
	if j.Record.Outcome != api.SystemError && j.Record.Outcome != api.InvalidInput {
		j.Warn("cleaning up: %s", fault.Public(err).Msg)
	}
}

// cleanFiles keeps the attempt's directory where that is wanted, and leaves of the run's
// directory what is kept, or nothing.
func (j *job) cleanFiles() {
	if err := errors.Join(j.keep(), keepOnly(j.Dir)); err != nil {
		j.loop.logger.Error("run's directory can't be cleaned", "run", j.ID, fault.LogAttr(err))
	}
}

// keep moves the attempt's directory to where nobody sweeps.
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
	target := keptPath(j.loop.kept, j.ID)
	if err := os.Rename(j.AttemptDir(), target); err != nil {
		return fmt.Errorf("keep run directory: %w", err)
	}
	j.keptAt = target
	return nil
}
