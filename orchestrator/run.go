package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/runtime"
)

// Run is one execution of a unit. It has exactly one end.
type Run struct {
	id    string
	req   Request
	ready prepared
	done  chan struct{} // closed when all below is final
	err   error
	kept  string

	card   *au.Card // of an Agentic Unit, when it has been read
	family family
	slot   *queue.Permit // while it may run

	// What a Service adds; zero for a run that lives and dies with its caller.
	journal   journal
	attempt   int    // its number; 0 is the first and only one
	inputs    string // the directory of its input files; "" is that of the attempt
	published string // the directory that its output files become; "" delivers them
	lease     lease

	observing sync.Mutex // one call of the observer at a time
	record    api.Record
}

// journal is the memory of a run that outlives its process.
type journal interface {
	// save stores the record as it is now, and the transition that made it so. It
	// returns when both are safe, or an error with the end of the run's process.
	save(transition api.Transition) error
	// note keeps what would be no great loss.
	note(event Event)
}

func newRun(id string, ready prepared, req Request) *Run {
	r := &Run{
		id: id, req: req, ready: ready, done: make(chan struct{}),
		record: api.Record{ID: id, Unit: req.Capsule.Name, State: api.Idle, Files: []api.File{}, CreatedAt: time.Now().UTC()},
	}
	if req.family == nil {
		r.family = newFamily(id, req.Capsule)
		return r // its record tells of no tree
	}
	r.family = *req.family
	r.family.path[len(r.family.path)-1].Run = id
	r.record.Parent, r.record.Root = r.family.parent, r.family.root
	return r
}

// ID returns the run's id.
func (r *Run) ID() string { return r.id }

// Wait returns when everything of the run is over, its cleaning up as well. The
// record is whole in any case; the error is a fault of AOD's or the engine's, or
// tells that what was left behind could not be removed.
func (r *Run) Wait() (api.Record, error) {
	<-r.done
	return r.record, r.err
}

// hasEnded reports whether Wait would return at once.
func (r *Run) hasEnded() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// KeptAt returns where the run's directory was left, after Wait; "" if it wasn't.
func (r *Run) KeptAt() string { return r.kept }

// execute leads a run that lives with its caller through its states to its end.
func (o *Orchestrator) execute(ctx context.Context, run *Run) error {
	ctx, stop := run.family.bound(ctx)
	defer stop()
	_ = run.enter(api.Starting, "") // there is no journal that could fail
	err := o.attemptIn(ctx, run)
	if run.record.Outcome == "" {
		_ = run.end(failure(ctx, err))
	} else if err != nil && run.record.Outcome != api.SystemError && run.record.Outcome != api.InvalidInput { // that is the outcome
		run.warn("cleaning up: %s", fault.Public(err).Msg)
	}
	_ = run.enter(api.Idle, "")
	o.logger.Info("run ended", "run", run.id, "outcome", run.record.Outcome, "total_ms", run.record.Timings.Total)
	if run.record.Outcome == api.SystemError {
		return err
	}
	return nil
}

// attemptIn makes the run's one attempt in a directory of its own, which is gone
// afterwards. An outcome is in the record; the error is a fault, perhaps beside it.
func (o *Orchestrator) attemptIn(ctx context.Context, run *Run) (err error) {
	dir, err := o.data.open(run.id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.dispose(run, dir, errors.Is(err, runtime.ErrLeftBehind))) }()
	err = o.once(ctx, run, dir.path)
	if err != nil && run.record.Outcome == "" {
		_ = run.end(failure(ctx, err)) // there is no journal that could fail
	}
	return err
}

// once starts the container, waits for its end and takes the result. The container is
// removed while the result is read: nothing of that is in it.
func (o *Orchestrator) once(ctx context.Context, run *Run, dir string) error {
	run.slot = o.queue.Reenter(run.record.Unit, 0)
	if err := run.slot.Wait(ctx); err != nil {
		return err
	}
	defer run.slot.Leave()
	if run.isRemote() {
		return o.settleRemote(ctx, run)
	}
	box, err := o.start(ctx, run, dir)
	if err != nil {
		return err
	}
	end, err := box.wait(ctx)
	box.desk.close(errCallerEnded)
	var removal sync.WaitGroup
	var exit runtime.Exit
	var unsettled, removed error
	removal.Go(func() {
		if box.early {
			exit, unsettled = box.sandbox.Settle(context.WithoutCancel(ctx))
		}
		removed = box.sandbox.Remove(ctx)
	})
	if err == nil {
		err = box.settle(end)
	}
	removal.Wait()
	if box.early {
		box.noteRest(exit, unsettled)
	}
	return errors.Join(err, removed)
}

// settle ends the run with what came out of its one attempt.
func (b *box) settle(end runtime.End) error {
	c, err := b.run.conclude(end, b.layout, b.limits)
	if err != nil {
		return err
	}
	return b.run.end(c)
}

// dispose lets the run's directory go, or keeps it where that was asked for. While a
// container is left behind, the directory stays in its place as an orphan: it is what
// tells the next sweep of the container.
func (o *Orchestrator) dispose(run *Run, dir *runDir, leftBehind bool) (err error) {
	defer func() { err = errors.Join(err, dir.release()) }()
	_ = run.enter(api.Cleanup, "")
	switch {
	case leftBehind:
		return nil
	case run.req.Keep:
		run.kept, err = o.data.keep(dir)
		return err
	}
	return dir.remove()
}

// enter stores a transition and tells of it. What the new state is for may be done
// when it returns without an error.
func (r *Run) enter(state api.State, reason string) error {
	transition := api.Transition{State: state, At: time.Now().UTC(), Reason: reason}
	if r.attempt > 1 {
		transition.Attempt = r.attempt
	}
	r.record.Transitions = append(r.record.Transitions, transition)
	if state != api.Cleanup && state != api.Idle { // then the record goes on showing how the run ended
		r.record.State = state
	}
	event := Event{State: &transition, Files: len(r.record.Files)}
	if r.record.Error != nil {
		event.Outcome = r.record.Error.Kind
	}
	r.observe(event)
	if r.journal == nil {
		return nil
	}
	return r.journal.save(transition)
}

// over reports whether all is done, the cleaning up as well.
func (r *Run) over() bool {
	last := len(r.record.Transitions) - 1
	return r.record.Outcome != "" && r.record.Transitions[last].State == api.Idle
}

// end enters one of the four states in which a run can end.
func (r *Run) end(c conclusion) error {
	r.record.Outcome, r.record.ExitCode, r.record.Error = c.outcome, c.exit, c.failure
	r.record.Output = c.output
	now := time.Now().UTC()
	r.record.FinishedAt, r.record.Timings.Total = &now, milliseconds(now.Sub(r.record.CreatedAt))
	if len(c.files) > 0 {
		r.record.Files = c.files
	}
	return r.enter(c.state, c.reason())
}

func (c conclusion) reason() string {
	if c.failure != nil {
		return c.failure.Message
	}
	return string(c.outcome)
}

func (r *Run) warn(format string, args ...any) {
	warning := fmt.Sprintf(format, args...)
	r.record.Warnings = append(r.record.Warnings, warning)
	r.tell(Event{Warning: warning})
}

func (r *Run) logged(line runtime.LogLine) { r.tell(Event{Log: &line}) }

func (r *Run) built(event runtime.BuildEvent) { r.tell(Event{Build: &event}) }

// tell passes on what is no transition.
func (r *Run) tell(event Event) {
	r.observe(event)
	if r.journal != nil {
		r.journal.note(event)
	}
}

func (r *Run) observe(event Event) {
	if r.req.Observe == nil {
		return
	}
	event.Run, event.Unit, event.Parent = r.id, r.record.Unit, r.family.parent
	r.observing.Lock()
	defer r.observing.Unlock()
	r.req.Observe(event)
}
