// Package feature is the seam between the loop that leads runs and what takes part in runs of every kind.
//
//	Feature.Join      gives a run its Part
//	Part.Open         when the run has its place among the others
//	Part.Prepare      what is stored with it, and Part.Begin what is told of it
//	Part.Mounts       what the programs of an attempt find
//	Part.Note         before each save, Part.Again between two attempts
//	Part.Conclude     before the outcome is stored
//	Part.Close        when the process has nothing more to do with the run
//
// The packages below it are the features. It must not know any of them, nor how runs are led.
//
// Further interfaces of a Feature: Initializer (the journal, what starts runs), Restorer (more is stored than the
// record has), Rewinder (where runs can begin again; a Part that takes over is an Heir), Runner (work beside the runs),
// Sweeper (files of no run), Reporter (what goes on with a unit), Bounder (what is left to teams), Placer (runs at
// other machines), and Collectors for metrics. Why: docs/adr/0010-features-are-a-seam.md.
//
// Its Go API may change with every release: see docs/stability.md.
package feature

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Feature takes part in runs. What leads the runs knows no feature by name: it has each of them join
// each run, and calls the methods of its part.
type Feature interface {
	// Join returns the feature's part of a run that this process begins to lead: of a new one whose
	// request came with ctx, or of one with the record that an earlier process stored. caller is the part
	// of the run that calls it; nil: none does, or an earlier process led it. Join starts nothing.
	Join(ctx context.Context, r *run.Run, caller Part) Part
}

// Part is what a feature keeps of one run while a process leads it. But for Mounts the goroutine that
// leads the run calls the methods.
type Part interface {
	// Open is called when a new run has its place among the others, before it is stored. Close follows
	// in any case.
	Open()
	// Prepare returns rows of the store that are stored with a new run. It may take its time. An error
	// refuses the run.
	Prepare(ctx context.Context) ([]store.WithRun, error)
	// Begin returns what is told of a new run from the start: it is stored with it.
	Begin() []api.EventData
	// Mounts are what the programs of an attempt find in the capsule API. The run's slot goes to others
	// while it waits in one of them.
	Mounts(slot Slot) []capsuleapi.Mount
	// Note brings the record up to date, before it is stored with a transition.
	Note()
	// Again is called between two attempts.
	Again()
	// Conclude does what Note does once, when the last attempt and its calls have ended, before the outcome is
	// stored.
	Conclude()
	// Close is called when this process has nothing more to do with the run.
	Close()
}

// Slot is what a run may give away while it waits.
type Slot interface {
	// Await calls wait without the slot, unless ctx has ended before.
	Await(ctx context.Context, wait func())
	// Regain waits for the slot, and reports whether the run has it.
	Regain(ctx context.Context) bool
	// Lend calls wait without the slot, and waits for it again while the run goes on.
	Lend(wait func())
}

// Indifferent is a Part that minds nothing, for others to embed.
type Indifferent struct{}

// Open implements Part.
func (Indifferent) Open() {}

// Prepare implements Part.
func (Indifferent) Prepare(context.Context) ([]store.WithRun, error) { return nil, nil }

// Begin implements Part.
func (Indifferent) Begin() []api.EventData { return nil }

// Mounts implements Part.
func (Indifferent) Mounts(Slot) []capsuleapi.Mount { return nil }

// Note implements Part.
func (Indifferent) Note() {}

// Again implements Part.
func (Indifferent) Again() {}

// Conclude implements Part.
func (Indifferent) Conclude() {}

// Close implements Part.
func (Indifferent) Close() {}

// Initializer is a Feature that needs something of the process that leads the runs.
type Initializer interface {
	// Init is called once, before the first run is led. Its error is a fault.
	Init(Process) error
}

// Rewinder is a Feature that knows the turns of runs.
type Rewinder interface {
	// Turn returns when a run, by its directory, began its n-th turn. The error is a Conflict fault where no other run
	// can begin there.
	Turn(runDir string, n int) (time.Time, error)
}

// Heir is a Part whose run may begin with what another one has come to.
type Heir interface {
	// Inherit is called before a new run is stored, with the directory of the other one, which has ended, and the time
	// after which nothing is taken over.
	Inherit(runDir string, before time.Time) error
}

// Runner is a Feature with something to do beside the runs.
type Runner interface {
	// Run is called when the runs of an earlier process go on, and returns soon after ctx has ended.
	Run(ctx context.Context)
}

// Placer is a Feature that has runs go on at other machines than the server's.
type Placer interface {
	// Admit returns a fault if no machine would ever take the runs of a unit.
	Admit(u *unit.Unit) error
	// Place returns the labels without which a machine doesn't take a run, and how much the run prefers one by its
	// name; nil: all the same. The queue calls it with its lock held.
	Place(r *run.Run) (needs []string, prefers func(machine string) int)
	// Execution returns what makes the attempts of a run, wherever it has its slot: see run.Record.Worker.
	Execution(r *run.Run, kind run.Kind) run.Execution
	// Conversant returns what ends sessions wherever they are, given what does so here.
	Conversant(here run.Conversant) run.Conversant
}

// Machines are the machines where runs have their slots.
type Machines interface {
	SetMachine(name string, as queue.Machine)
	RemoveMachine(name string)
	SetLabels(labels ...string)
	// Running returns how many runs hold a slot of a machine.
	Running(name string) int
}

// Process is what leads runs, for features.
type Process struct {
	Life         context.Context //nolint:containedctx // ends when the process lets go of its runs
	Home         run.Home
	PayloadBytes int64 // of the input of a run, at most
	Kinds        run.Kinds
	Events       store.Teller
	ModelCalls   ModelCalls
	Runs         Runs
	Cancel       func(ctx context.Context, id, reason string) (api.Record, error) // has a run end
	Logger       *slog.Logger

	// Of a server, whose runs outlive the process; else nil.
	Machines    Machines
	Store       *store.Store
	Library     Library
	Gate        Gate
	Units       run.Units
	Submissions Submissions
	Teams       access.Teams
	// InUse returns the units that can be run, and those of live runs, in their versions.
	InUse func(ctx context.Context) ([]*unit.Unit, error)
}

// ModelCalls keeps the books of runs: each request for a model that may cost something.
type ModelCalls interface {
	Add(ctx context.Context, run string, c store.ModelCall) (n int64, err error)
	Save(ctx context.Context, run string, c store.ModelCall) error
}

// Runs are the runs that a process leads.
type Runs interface {
	// Await returns a run when it has its outcome, or as it stands when ctx or the process ends.
	Await(ctx context.Context, id string) (api.Record, error)
}

// Submissions start runs, as the client of a context.
type Submissions interface {
	// Submit starts a run, or joins that of an earlier submission with the same key. An error is a fault with the
	// reason, and nothing is left then.
	Submit(ctx context.Context, sub spool.Submission) (record api.Record, joined bool, err error)
	// Check returns the fault with which a submission would be refused now. It starts nothing.
	Check(ctx context.Context, sub spool.Submission) error
	// Permits returns a fault if a unit can't be run, whatever its input is.
	Permits(ctx context.Context, unit string) error
	// NewSpool returns an empty spool, for the files of a run.
	NewSpool() (*spool.Spool, error)
	// ShuttingDown reports whether no run is admitted because of this process, not because of the run.
	ShuttingDown() bool
}

// Gate says what a server takes.
type Gate interface {
	// Writable returns a fault while nothing may be stored.
	Writable(ctx context.Context) error
	// Admits returns a fault while nothing new is taken: likewise, and while the server starts or ends.
	Admits(ctx context.Context) error
}

// Library has what is kept of runs.
type Library interface {
	// RunDir returns the directory of a run. One that the client of ctx may not know of is a NotFound
	// fault.
	RunDir(ctx context.Context, id string) (string, error)
	// OpenWhole opens a file of a run, and finds damage where its content isn't what is known of it.
	OpenWhole(root *os.Root, id string, file api.File) (*os.File, error)
}

// Restorer is a Feature that has stored something that this process goes on with.
type Restorer interface {
	// Restore is called once, with the parts of the runs that go on from where an earlier process left
	// them, callers first, and before any of them goes on. After an error no run goes on.
	Restore(ctx context.Context, parts []Part, tree Ancestry) error
}

// Ancestry tells whose calls the runs of a tree are.
type Ancestry interface {
	// GoesOn reports whether a run has not ended.
	GoesOn(id string) bool
	// Parents returns the callers of the runs in the tree of a root, by run.
	Parents(ctx context.Context, root string) (map[string]string, error)
}

// Sweeper is a Feature that keeps files that belong to no run.
type Sweeper interface {
	// RemoveStrays removes what a process left that died between two steps.
	RemoveStrays(ctx context.Context) error
}

// Bounder is a Feature that bounds what teams and tokens may have.
type Bounder interface {
	// Quotas tells of the bounds that hold for those of whom mine is true: of a team, or of a token, by its name.
	Quotas(ctx context.Context, mine func(team, token string) bool) ([]api.Quota, error)
}

// Reporter is a Feature that knows what goes on with units.
type Reporter interface {
	// Report adds what it knows of a unit to what the client of ctx is told.
	Report(ctx context.Context, unit string, status *api.UnitStatus)
}
