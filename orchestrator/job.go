package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/runtime"
)

// job is a run of a Service, from its acceptance to the end of its cleaning up. What it
// does is done by one goroutine, in drive.
type job struct {
	*Run
	service  *Service
	private  private
	ticket   *queue.Permit // nil while it neither waits in the queue nor runs
	box      *box          // the sandbox of its newest attempt; nil where there is none to hand
	spent    bool          // it had its outcome when it was recovered
	broken   error         // why this process can't go on with it; nil if it can
	cold     bool          // no waiting sandbox is taken any more
	troubled bool          // the engine may hold something of it that this process doesn't know
	log      *logFile
	pending  []Event // to be stored with the next transition

	life    context.Context // of the run in this process
	cancel  context.CancelCauseFunc
	ended   chan struct{} // closed when the outcome is stored
	outcome api.Record    // what is stored with it; set before
	gone    chan struct{} // closed when this process has nothing more to do with it
	news    notifier      // of events and log lines
}

// private is what a Service has to know of a run and tells nobody.
type private struct {
	Timeout     time.Duration `json:"timeout,omitempty"`
	Retries     int           `json:"retries"` // how many there may be
	Concurrency int           `json:"concurrency,omitempty"`
	TraceParent string        `json:"traceparent,omitempty"`

	Boxes map[int]string `json:"boxes,omitempty"` // the waiting sandboxes that attempts became, by their numbers
	Lease lease          `json:"lease,omitzero"`
	// Refused are the lines in the attempt's log of a sandbox that it had before its own.
	Refused seenLines `json:"refused,omitzero"`

	Path     []handoff.Step `json:"path,omitempty"` // see family
	Deadline time.Time      `json:"deadline,omitzero"`
}

// drive leads the run from the state in which it is to its very end. It returns early
// when the process detaches: then the next Service goes on.
func (j *job) drive() {
	defer j.service.retire(j)
	defer j.log.close()
	ctx, span := tracer.Start(withRemoteParent(j.life, j.private.TraceParent), "run",
		trace.WithAttributes(attribute.String("aod.run", j.id), attribute.String("aod.unit", j.record.Unit)))
	defer span.End()
	if j.record.Outcome == "" {
		bounded, stop := j.family.bound(ctx)
		c, err := j.attempts(bounded)
		stop()
		if err == nil {
			j.service.endCalls(j.id, errCallerEnded) // also those of an earlier process's attempt
			j.noteCalls(ctx)
			err = j.end(c)
		}
		if err != nil {
			j.release()
			return
		}
		j.service.concluded(j)
	}
	j.outcome = j.record
	close(j.ended)
	if j.clean(ctx) != nil {
		j.release()
		return
	}
	j.service.logger.Info("run finished", "run", j.id, "outcome", j.record.Outcome, "total_ms", j.record.Timings.Total)
}

// release lets go of a sandbox that goes on without us.
func (j *job) release() {
	if j.box != nil {
		if j.box.alive {
			j.box.desk.close(runtime.ErrDetach)
		}
		j.box.sandbox.Release()
	}
	if j.ticket != nil {
		j.ticket.Leave()
	}
}

// attempts tries until there is a conclusion that stays. Its error is the process's end.
func (j *job) attempts(ctx context.Context) (conclusion, error) {
	for j.broken == nil {
		j.attempt = len(j.record.Attempts) + 1
		c, err := j.try(ctx)
		if err != nil || !j.again(c) {
			return c, err
		}
		if err := j.giveUp(ctx, c); err != nil {
			return c, err
		}
		if err := j.pause(ctx); err != nil {
			return ended(nil, err), detached(ctx, err)
		}
	}
	return brokenRun(j.broken), nil
}

// again says whether the run is tried once more (specification "Agent Wrapper", Retry Logic).
func (j *job) again(c conclusion) bool {
	return c.failure != nil && c.failure.Category == api.CategoryTransient &&
		c.failure.Kind != api.KindQueueTimeout && len(j.record.Attempts) < j.private.Retries
}

// giveUp puts an attempt among the earlier ones. What of it can't be removed now is
// removed before the next one, or at the end.
func (j *job) giveUp(ctx context.Context, c conclusion) error {
	j.discard(ctx)
	j.service.endCalls(j.id, errCallerEnded)
	if err := removeRun(j.published); err != nil {
		j.service.logger.Warn("output of a failed attempt not removed", "run", j.id, about(err))
	}
	attempt := api.Attempt{
		Number: j.attempt, Outcome: c.outcome, ExitCode: c.exit, Error: c.failure,
		Usage: j.record.Usage, FinishedAt: time.Now().UTC(),
	}
	j.record.Attempts = append(j.record.Attempts, attempt)
	j.private.Refused = seenLines{}
	j.record.Retries, j.record.Usage = len(j.record.Attempts), nil
	j.troubled = true
	j.pending = append(j.pending, Event{Attempt: &attempt, Delay: j.delay()})
	j.service.metrics.retried(j.record.Unit)
	return j.enter(api.Failed, c.reason())
}

// delay is how long to wait before the attempt after those that failed.
func (j *job) delay() time.Duration {
	return j.service.opts.RetryDelay << min(len(j.record.Attempts)-1, 16)
}

// pause waits before the next attempt. Its error is why the run shall not go on.
func (j *job) pause(ctx context.Context) error {
	ctx, stop := j.service.waiting(ctx)
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
// else is a conclusion.
func (j *job) try(ctx context.Context) (conclusion, error) {
	if err := j.takeSlot(ctx); err != nil {
		return j.unserved(err), detached(ctx, err)
	}
	defer j.leaveSlot()
	c, err := j.runOnce(ctx)
	if err == nil {
		return c, nil
	}
	if end := detached(ctx, err); end != nil {
		return c, end
	}
	j.troubled = true
	j.service.logger.Warn("attempt ended with a fault", "run", j.id, "attempt", j.attempt, "kind", fault.KindOf(err).String(), about(err))
	return failure(ctx, err), nil
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
	if j.ticket == nil {
		j.ticket = j.service.queue.Reenter(j.record.Unit, j.private.Concurrency)
	}
	began := time.Now()
	defer func() { j.record.Timings.Queue += milliseconds(time.Since(began)) }()
	ctx, stop := j.service.waiting(ctx)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, j.service.opts.QueueWait, errQueueWait)
	defer cancel()
	err := j.ticket.Wait(ctx)
	if err != nil {
		j.ticket = nil
	}
	return err
}

// unserved concludes a run whose turn didn't come.
func (j *job) unserved(err error) conclusion {
	if !errors.Is(err, errQueueWait) {
		return ended(nil, err)
	}
	return conclusion{state: api.Failed, outcome: api.SystemError, failure: &api.RunError{
		Category: api.CategoryTransient, Kind: api.KindQueueTimeout,
		Message: fmt.Sprintf("the run waited for more than %v for its turn", j.service.opts.QueueWait),
		Hint:    "try again later; the settings `concurrency` and `queue_wait` say how many run and how long others wait",
	}}
}

func (j *job) leaveSlot() {
	j.ticket.Leave()
	j.ticket = nil
}

// runOnce starts the attempt's container, or takes over one that there is, waits for its
// end and takes the result.
func (j *job) runOnce(ctx context.Context) (conclusion, error) {
	if j.isRemote() {
		return j.callRemote(ctx)
	}
	end, err := j.openAndWait(ctx)
	if err == nil && j.box.unborn(end) {
		if err = j.refuse(ctx); err == nil {
			end, err = j.openAndWait(ctx)
		}
	}
	if err != nil {
		return conclusion{}, err
	}
	_, span := tracer.Start(ctx, "collect")
	defer span.End()
	defer func() { j.service.pool.learn(j.Run, j.box.desk.asked()) }()
	if j.box.alive {
		if j.box.layout, err = j.box.layout.Taken(); err != nil {
			return conclusion{}, err
		}
	}
	return j.conclude(end, j.box.layout, j.box.limits)
}

func (j *job) openAndWait(ctx context.Context) (runtime.End, error) {
	if err := j.open(ctx); err != nil {
		return runtime.End{}, err
	}
	ctx, span := tracer.Start(ctx, "wait")
	defer span.End()
	end, err := j.box.wait(ctx)
	j.box.leaveDesk(callsEnd(err))
	return end, err
}
