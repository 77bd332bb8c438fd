package run

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/flow"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/unit"
)

// Run is one execution of a unit. It has exactly one end. One goroutine leads it; Log, Built
// and Tell may be called by others.
type Run struct {
	ID      string
	Unit    *unit.Unit
	Input   Input
	Lineage Lineage
	Limits  runtime.Limits // in force, but for what the kind alone bounds
	Record  api.Record
	Attempt int // the number of the attempt, from 1

	Dir     string // the run's own, absolute; an attempt's is in it
	OutDir  string // where output files are delivered; "" publishes them in Dir
	Keep    bool   // the attempt's directory is kept
	Extra   any    // Request.Extra
	Durable bool   // the run outlives this process

	Grants   []string       // units that it may call
	Handoffs handoff.Limits // of what it calls

	// Saved is what the kind needs to resume the run in another process. The kind sets it to
	// a value that encoding/json can write. It is stored with the next transition.
	Saved any

	host      Host
	observe   func(Event)
	observing sync.Mutex // one call of the observer at a time
}

// New returns the run of a prepared request, in the state in which it is accepted.
func New(id string, req Request, ready Input, fallback runtime.Limits) *Run {
	now := time.Now().UTC()
	r := &Run{
		ID: id, Unit: req.Unit, Input: ready, Limits: req.Limits(fallback), Extra: req.Extra,
		Record: api.Record{
			ID: id, Unit: req.Unit.Name, Kind: string(req.Unit.Kind), State: api.Idle, Status: api.Queued, Input: ready.Payload.JSON(), Files: []api.File{},
			CreatedAt: now, Transitions: []api.Transition{{State: api.Idle, At: now, Reason: string(api.Queued)}},
		},
	}
	if req.Lineage == nil {
		r.Lineage = NewLineage(id, req.Unit)
	} else {
		r.Lineage = *req.Lineage
		r.Lineage.Path[len(r.Lineage.Path)-1].Run = id
	}
	r.Record.Parent, r.Record.Root = r.Lineage.Parent, r.Lineage.Root
	return r
}

// Host is what leads a run.
type Host interface {
	// Save stores the record as it is now, and the transition that made it so. It returns
	// when both are safe, or runtime.ErrDetach at the end of the process.
	Save(transition api.Transition) error
	// Note stores an event that may be lost when the process dies.
	Note(event Event)
	// Calls returns the child runs of an attempt.
	Calls() ChildRuns
	// Waiting returns a context that also ends when the admission ends.
	Waiting(ctx context.Context) (context.Context, context.CancelFunc)
	// Aside gives the run's slot to others while wait is called, and takes one again. Its
	// error is the cause that ctx ended with before.
	Aside(ctx context.Context, wait func()) error
	// Logged returns how many lines of the attempt an earlier process kept.
	Logged() Lines
	// CancelRequest returns the cancel request that an earlier process stored, or nil.
	CancelRequest() error
	Keeper
}

// Keeper keeps what a flow's run needs while it goes on.
type Keeper interface {
	// Steps returns the steps that are kept, in the order in which they were.
	Steps(ctx context.Context) ([]flow.Step, error)
	// KeepStep stores a step in place of that with the same address and try. It returns when
	// the step is safe, or runtime.ErrDetach at the end of the process.
	KeepStep(step flow.Step) error
	// Ask asks people; see flow.Host.
	Ask(ctx context.Context, q flow.Question) (flow.Answer, error)
	// Earlier returns the newest success of a call that is to be cached, if one is young enough
	// and known.
	Earlier(ctx context.Context, c CachedCall) (handoff.Result, bool)
	// Remember has a call that succeeded be found by Earlier. That it can't is no error.
	Remember(ctx context.Context, c CachedCall, id string)
}

// CachedCall is what two calls have in common of which one may stand for the other, beside the
// version of the unit.
type CachedCall struct {
	Unit  string
	Input string        // a digest of the arguments, and of the contents of their files
	Age   time.Duration // that a success may have
}

// Lines count the lines of an attempt's log.
type Lines struct {
	Stdout int `json:"stdout,omitempty"`
	Stderr int `json:"stderr,omitempty"`
}

// Minus returns the counts without those of others.
func (l Lines) Minus(others Lines) Lines {
	return Lines{Stdout: l.Stdout - others.Stdout, Stderr: l.Stderr - others.Stderr}
}

// LedBy sets the host that leads the run, and the observer of its events, which may be nil.
func (r *Run) LedBy(host Host, observe func(Event)) { r.host, r.observe = host, observe }

// Calls returns the child runs of the attempt.
func (r *Run) Calls() ChildRuns { return r.host.Calls() }

// Waiting returns a context that also ends when the admission ends.
func (r *Run) Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	return r.host.Waiting(ctx)
}

// Aside gives the run's slot to others while wait is called, and takes one again. Its error is
// the cause that ctx ended with before.
func (r *Run) Aside(ctx context.Context, wait func()) error { return r.host.Aside(ctx, wait) }

// Logged returns how many lines of the attempt an earlier process kept.
func (r *Run) Logged() Lines { return r.host.Logged() }

// CancelRequest returns the cancel request that an earlier process stored, or nil.
func (r *Run) CancelRequest() error { return r.host.CancelRequest() }

// Steps returns the steps of a flow that are kept, in the order in which they were.
func (r *Run) Steps(ctx context.Context) ([]flow.Step, error) { return r.host.Steps(ctx) }

// KeepStep stores a step of a flow, and tells the observer.
func (r *Run) KeepStep(step flow.Step) error {
	if err := r.host.KeepStep(step); err != nil {
		return err
	}
	node := NodeEvent(step)
	r.notify(Event{Node: &node})
	return nil
}

// Ask asks people; see flow.Host.
func (r *Run) Ask(ctx context.Context, q flow.Question) (flow.Answer, error) {
	return r.host.Ask(ctx, q)
}

// Earlier returns the newest success of a call that is to be cached, if there is one.
func (r *Run) Earlier(ctx context.Context, c CachedCall) (handoff.Result, bool) {
	return r.host.Earlier(ctx, c)
}

// Remember has a call that succeeded be found by Earlier.
func (r *Run) Remember(ctx context.Context, c CachedCall, id string) { r.host.Remember(ctx, c, id) }

// NodeEvent tells of a step without its values.
func NodeEvent(s flow.Step) api.NodeEvent {
	event := api.NodeEvent{Address: s.Address, Try: s.Try, State: api.StepState(s.State), Run: s.Run, Cached: s.Cached, Action: s.Action}
	if s.Failure != nil {
		event.ErrorKind = s.Failure.Kind
	}
	return event
}

// InputDir is the directory of the run's input files.
func (r *Run) InputDir() string { return filepath.Join(r.Dir, "input") }

// StateDir is the directory of the files in a flow's state, each under its digest.
func (r *Run) StateDir() string { return filepath.Join(r.Dir, "state") }

// OutputDir is the directory of the run's output files, unless the request has an OutDir.
func (r *Run) OutputDir() string { return filepath.Join(r.Dir, "output") }

// AttemptDir is the directory of the attempt. The kind makes it if it needs one.
func (r *Run) AttemptDir() string { return filepath.Join(r.Dir, strconv.Itoa(r.Attempt)) }

// Enter stores a transition and tells the observer. The work of the new state may begin only
// when Enter has returned nil.
func (r *Run) Enter(state api.State, reason string) error {
	if err := r.legal(state); err != nil {
		return err
	}
	transition := api.Transition{State: state, At: time.Now().UTC(), Reason: reason}
	if r.Attempt > 1 {
		transition.Attempt = r.Attempt
	}
	r.Record.Transitions = append(r.Record.Transitions, transition)
	if state != api.Cleanup && state != api.Idle { // then the record goes on showing how the run ended
		r.Record.State, r.Record.Status = state, state.Status()
	}
	event := Event{State: &transition, Files: len(r.Record.Files)}
	if r.Record.Error != nil {
		event.Outcome = r.Record.Error.Kind
	}
	r.notify(event)
	return r.host.Save(transition)
}

// End enters one of the four states in which a run can end.
func (r *Run) End(result Result) error {
	if result.Failure != nil {
		result.Failure.Hint = r.boundHint(*result.Failure)
	}
	r.Record.Outcome, r.Record.ExitCode, r.Record.Error = result.Outcome, result.ExitCode, result.Failure
	r.Record.Output = result.Output
	now := time.Now().UTC()
	r.Record.FinishedAt, r.Record.Timings.Total = &now, Milliseconds(now.Sub(r.Record.CreatedAt))
	if len(result.Files) > 0 {
		r.Record.Files = result.Files
	}
	return r.Enter(result.State, result.Reason())
}

// Warn adds a warning to the record.
func (r *Run) Warn(format string, args ...any) {
	warning := fmt.Sprintf(format, args...)
	r.Record.Warnings = append(r.Record.Warnings, warning)
	r.Tell(Event{Warning: warning})
}

// Log passes on a line that the unit wrote.
func (r *Run) Log(line runtime.LogLine) { r.Tell(Event{Log: &line}) }

// Built passes on a step of the build of the unit's image.
func (r *Run) Built(event runtime.BuildEvent) { r.Tell(Event{Build: &event}) }

// Tell passes on an event that is no transition.
func (r *Run) Tell(event Event) {
	r.notify(event)
	r.host.Note(event)
}

func (r *Run) notify(event Event) {
	if r.observe == nil {
		return
	}
	event.Run, event.Unit, event.Parent = r.ID, r.Record.Unit, r.Lineage.Parent
	r.observing.Lock()
	defer r.observing.Unlock()
	r.observe(event)
}

// Observer returns the observer of the run's events, or nil.
func (r *Run) Observer() func(Event) { return r.observe }

// Milliseconds converts a duration to the unit of records.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
