package run

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/runtime"
)

// Run is one execution of a unit. It has exactly one end. One goroutine leads it; Log, Built
// and Tell may be called by others.
type Run struct {
	Services // of its host

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
	Project bool   // it works on a project, which was in BaseDir when it, or its session, began

	Session *Session           // of which it is a turn; nil: of none
	Start   capsule.AgentStart // as its caller said
	First   *api.MessageEvent  // of its client, of a run that is new; nil: none

	People     People // who answer its questions
	Unattended bool   // nobody answers them: they are denied

	Units    Units          // where it finds the units that it calls
	Grants   []string       // that it may call
	Handoffs handoff.Limits // of what it calls

	// Saved is what the kind needs to resume the run in another process. The kind sets it to
	// a value that encoding/json can write. It is stored with the next transition.
	Saved any

	Masking   unit.Masking // of what is stored and shown of it
	maskedLog maskedLog
	// Secrets are those that its program gets, by their names, where the machine doesn't keep them itself; else nil.
	Secrets map[string]secrets.Secret
	told    maskedTold
	hidden  atomic.Pointer[hidden]
	waits   atomic.Pointer[api.Waiting]

	host      Host
	observe   func(Event)
	observing sync.Mutex // one call of the observer at a time
}

// New returns the run of a prepared request, in the state in which it is accepted.
func New(id string, req Request, ready Input, fallback runtime.Limits) *Run {
	now := time.Now().UTC()
	r := &Run{
		ID: id, Unit: req.Unit, Input: ready, Limits: req.Limits(fallback), Extra: req.Extra,
		Masking: req.Unit.Policy.Masking, Project: req.Project != nil, Start: req.Start,
		Record: api.Record{
			ID: id, Unit: req.Unit.Name, Kind: string(req.Unit.Kind), State: api.Idle, Status: api.Queued,
			Files:     []api.File{},
			CreatedAt: now, ChangedAt: &now,
			Transitions: []api.Transition{{State: api.Idle, At: now, Reason: string(api.Queued)}},
		},
	}
	r.maskInput(ready.Payload.JSON())
	if req.Lineage == nil {
		r.Lineage = NewLineage(id, req.Unit)
	} else {
		r.Lineage = *req.Lineage
		r.Lineage.Path[len(r.Lineage.Path)-1].Run = id
	}
	r.Record.Parent, r.Record.Root = r.Lineage.Parent, r.Lineage.Root
	return r
}

// Units finds units. What isn't there is a NotFound fault.
type Units interface {
	// Get returns a unit in its newest version.
	Get(ctx context.Context, name string) (*unit.Unit, error)
	// Version returns a unit in a version that is kept.
	Version(ctx context.Context, name, version string) (*unit.Unit, error)
}

// Host is what leads a run.
type Host interface {
	Services
	// Save stores the record as it is now, and the transition that made it so. It returns
	// when both are safe, or runtime.ErrDetach at the end of the process.
	Save(transition api.Transition) error
	// Note stores an event that may be lost when the process dies.
	Note(event Event)
	// Hold has the record as it is now, and the transition that made it so, stored with what is
	// stored next of the run.
	Hold(transition api.Transition) error
	// KeepSession stores what a kind saved of the run's session, with what its program told. It
	// returns when both are safe, or runtime.ErrDetach at the end of the process.
	KeepSession(saved json.RawMessage, told []api.AgentEvent) error
	// KeepTurn has both stored with the next transition.
	KeepTurn(saved json.RawMessage, told []api.AgentEvent)
	// KeepStep stores a step in place of that with the same address and try. It returns when
	// the step is safe, or runtime.ErrDetach at the end of the process.
	KeepStep(step flow.Step) error
}

// Services are what a kind asks of the host that leads its run.
type Services interface {
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
	// Ask opens a question, or finds it as it was opened under its address, and returns its
	// answer as People do.
	Ask(ctx context.Context, q Question) (Answer, error)
	// KeepSaved stores what the kind saved of the run, between two transitions. It returns when that
	// is safe, or runtime.ErrDetach at the end of the process.
	KeepSaved() error
	// WasTold reports whether something was told under a key. Something else under it is an Input fault.
	WasTold(ctx context.Context, once Once) (bool, error)
	// TellOnce stores what is told, and returns when it is safe, and was shown. Something else under the
	// key is an Input fault.
	TellOnce(ctx context.Context, once Once, data api.EventData) error
	// Span starts the span of a request that the run makes while it goes on, below its own.
	Span(name string, options ...trace.SpanStartOption) trace.Span
	// Steps returns the steps that are kept, in the order in which they were.
	Steps(ctx context.Context) ([]flow.Step, error)
	// Earlier returns the newest success of a call that is to be cached, if one is young enough
	// and known.
	Earlier(ctx context.Context, c CachedCall) (handoff.Result, bool)
	// Remember has a call that succeeded be found by Earlier. That it can't isn't an error.
	Remember(ctx context.Context, c CachedCall, id string)
}

// CachedCall is what two calls have in common of which one may stand for the other.
type CachedCall struct {
	Unit    string
	Version string        // of the unit; "": not known, and nothing is cached
	Input   string        // a digest of the arguments, and of the contents of their files
	Age     time.Duration // that a success may have
}

// Lines count the lines of an attempt's log.
type Lines struct {
	Stdout int `json:"stdout,omitempty"`
	Stderr int `json:"stderr,omitempty"`
}

// Count counts a line of a stream.
func (l *Lines) Count(stream string) {
	if stream == "stdout" {
		l.Stdout++
	} else {
		l.Stderr++
	}
}

// Plus returns the counts with those of others.
func (l Lines) Plus(others Lines) Lines {
	return Lines{Stdout: l.Stdout + others.Stdout, Stderr: l.Stderr + others.Stderr}
}

// Minus returns the counts without those of others.
func (l Lines) Minus(others Lines) Lines {
	return Lines{Stdout: l.Stdout - others.Stdout, Stderr: l.Stderr - others.Stderr}
}

// LedBy sets the host that leads the run, and the observer of its events, which may be nil.
func (r *Run) LedBy(host Host, observe func(Event)) {
	r.Services, r.host, r.observe = host, host, observe
}

// KeepStep stores a step of a flow, and tells the observer.
func (r *Run) KeepStep(step flow.Step) error {
	if err := r.host.KeepStep(step); err != nil {
		return err
	}
	r.Show(NodeEvent(step))
	return nil
}

// NodeEvent tells of a step without its values.
func NodeEvent(s flow.Step) api.NodeEvent {
	event := api.NodeEvent{
		Address: s.Address, Try: s.Try, State: api.StepState(s.State), Run: s.Run, Cached: s.Cached,
		Action: s.Action,
	}
	if s.Failure != nil {
		event.ErrorKind = s.Failure.Kind
	}
	return event
}

// InputDir is the directory of the run's input files.
func (r *Run) InputDir() string { return filepath.Join(r.Dir, "input") }

// StateDir is the directory of the files in a flow's state, each under its digest.
func (r *Run) StateDir() string { return filepath.Join(r.Dir, "state") }

// BaseDir is the directory of the project as it was given. Nobody changes it.
func (r *Run) BaseDir() string { return filepath.Join(r.givenTo(), "base") }

// ManifestFile is the file that says what is in BaseDir: see workspace.LoadManifest.
func (r *Run) ManifestFile() string { return filepath.Join(r.givenTo(), "base.json") }

// givenTo is the directory of what got the project: the session, or the run.
func (r *Run) givenTo() string {
	if s := r.Session; s != nil && s.Project {
		return s.Dir
	}
	return r.Dir
}

// ChangesDir is the directory of what the run made of its project: see workspace.Compare.
func (r *Run) ChangesDir() string { return filepath.Join(r.Dir, "changes") }

// ArtifactsDir is the directory of the files of its artifacts, each under its digest.
func (r *Run) ArtifactsDir() string { return filepath.Join(r.Dir, "artifacts") }

// OutputDir is the directory of the run's output files, unless the request has an OutDir.
func (r *Run) OutputDir() string { return filepath.Join(r.Dir, "output") }

// AttemptDir is the directory of the attempt. The kind makes it if it needs one.
func (r *Run) AttemptDir() string { return filepath.Join(r.Dir, strconv.Itoa(r.Attempt)) }

// Enter stores a transition and tells the observer. The work of the new state may begin only
// when Enter has returned nil.
func (r *Run) Enter(state api.State, reason string) error {
	transition, err := r.enter(state, reason)
	if err != nil {
		return err
	}
	return r.host.Save(transition)
}

// Pass is Enter for a state in which nothing begins before the kind keeps something, or the next
// transition comes: it is stored with that.
func (r *Run) Pass(state api.State) error {
	transition, err := r.enter(state, "")
	if err != nil {
		return err
	}
	return r.host.Hold(transition)
}

// enter takes a transition into the record, and tells the observer.
func (r *Run) enter(state api.State, reason string) (api.Transition, error) {
	if err := r.legal(state); err != nil {
		return api.Transition{}, err
	}
	transition := api.Transition{State: state, At: time.Now().UTC(), Reason: r.Masked(reason)}
	if r.Attempt > 1 {
		transition.Attempt = r.Attempt
	}
	r.Record.Previous, r.Record.ChangedAt = r.State(), &transition.At
	r.Record.Transitions = append(r.Record.Transitions, transition)
	if state != api.Cleanup && state != api.Idle { // then the record goes on showing how the run ended
		r.Record.State, r.Record.Status = state, state.Status()
	}
	event := Event{State: &transition, Files: len(r.Record.Files)}
	if r.Record.Error != nil {
		event.Outcome = r.Record.Error.Kind
	}
	r.notify(event)
	return transition, nil
}

// End enters one of the four states in which a run can end.
func (r *Run) End(result Result) error {
	if result.Failure != nil {
		result.Failure.Hint = r.boundHint(*result.Failure)
	}
	result = r.MaskedResult(result)
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
	warning := r.Masked(fmt.Sprintf(format, args...))
	r.Record.Warnings = append(r.Record.Warnings, warning)
	r.Tell(Event{Warning: warning})
}

// Log passes on a line that the unit wrote.
func (r *Run) Log(line runtime.LogLine) {
	line = r.maskedLine(line)
	r.tell(Event{Log: &line})
}

// WaitFor has others see that the run waits for something until over is called.
func (r *Run) WaitFor(reason, message string) (over func()) {
	r.waits.Store(&api.Waiting{Reason: reason, Message: message, Since: time.Now().UTC()})
	return func() { r.waits.Store(nil) }
}

// WaitsFor returns what WaitFor told; nil: the run doesn't wait, or in the queue.
func (r *Run) WaitsFor() *api.Waiting { return r.waits.Load() }

// Built passes on a step of the build of the unit's image.
func (r *Run) Built(event runtime.BuildEvent) { r.Tell(Event{Build: &event}) }

// Tell passes on an event that isn't a transition.
func (r *Run) Tell(event Event) { r.tell(r.maskedEvent(event)) }

// Show has the observer see what is stored by other means.
func (r *Run) Show(data api.EventData) { r.notify(Event{Data: data}) }

func (r *Run) tell(event Event) {
	r.notify(event)
	r.host.Note(event)
}

func (r *Run) notify(event Event) {
	if r.observe == nil {
		return
	}
	event.Run, event.Unit, event.Parent, event.Step = r.ID, r.Record.Unit, r.Lineage.Parent, r.Record.Step
	r.observing.Lock()
	defer r.observing.Unlock()
	r.observe(event)
}

// Observer returns the observer of the run's events, or nil.
func (r *Run) Observer() func(Event) { return r.observe }

// Milliseconds converts a duration to the unit of records.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
