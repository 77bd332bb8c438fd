package run

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// Kind carries out the runs of the units of one kind.
type Kind interface {
	// Check refuses a request beyond what its contract says, with a fault. It starts nothing.
	Check(req Request, ready Input) error
	// Execution returns what makes the attempts of a run. It starts nothing. A run that an
	// earlier process left has the state in which that was, and what it saved.
	Execution(r *Run) Execution
}

// Execution makes the attempts of one run, one after the other, in one goroutine.
type Execution interface {
	// Attempt makes a new attempt and returns how it ended. It enters Starting before
	// anything outside of this process begins, and Running when the unit's program runs.
	// Its error is a fault, a *Suspended, or runtime.ErrDetach where the run goes on without this
	// process.
	Attempt(ctx context.Context) (Result, error)
	// Resume is Attempt for an attempt that was begun, by an earlier process or until it asked: the
	// run is Starting or Running. What runs is not started again.
	Resume(ctx context.Context) (Result, error)
	// Settle waits for what is to come of the last attempt when the run has its outcome,
	// and takes it into the record. What it saves is stored with the next transition.
	Settle(ctx context.Context)
	// Discard removes the last attempt, before the next one. What it can't remove, Remove
	// removes later.
	Discard(ctx context.Context)
	// Remove removes everything that the run has outside of its directory. It may be called
	// again after an error.
	Remove(ctx context.Context) error
	// Release lets go of what goes on: the next process resumes it.
	Release()
}

// ErrUnplaced is the error of an Attempt for which nothing was begun: the machine where the run has its slot can't take
// it any more. The run waits for another slot.
var ErrUnplaced = errors.New("the machine takes no run any more")

// Bare is the part of an Execution that has nothing outside of its run's directory, and nothing to
// come after an attempt.
type Bare struct{}

// Settle implements Execution: nothing is to come.
func (Bare) Settle(context.Context) {}

// Discard implements Execution: there is nothing to remove.
func (Bare) Discard(context.Context) {}

// Remove implements Execution: there never was anything.
func (Bare) Remove(context.Context) error { return nil }

// Release implements Execution: what goes on needs nobody here.
func (Bare) Release() {}

// Sharer is an Execution whose sandbox may serve the next run of its unit.
type Sharer interface {
	// Shares reports whether it will, as far as is known when the attempt has ended. Then the
	// run keeps its slot until Remove has returned, and the slot goes to the next of the unit.
	Shares() bool
}

// Pinner is an Execution whose run stays with the versions of the units that it has called.
type Pinner interface {
	// Callee returns the unit that the run calls by a name, or a NotFound fault.
	Callee(ctx context.Context, name string) (*unit.Unit, error)
	// Pinned returns the versions, by the units' names. It may be called at any time.
	Pinned() map[string]string
}

// Opener is a Kind that needs the home of the runs before the first of them.
type Opener interface {
	// Open is called once, when nobody else has the home any more. Its error is a fault.
	Open(home Home) error
	// Close is called when no run goes on.
	Close() error
}

// Warmer is a Kind that gets things ready before there are runs for them.
type Warmer interface {
	// Warm does so until ctx ends, and gives up what nobody claimed.
	Warm(ctx context.Context, world World)
	// Warmed returns the figures of the moment.
	Warmed() api.PoolStats
}

// World is what a Warmer may ask about everybody else.
type World interface {
	// Units lists the units that can be run now.
	Units(ctx context.Context) []*unit.Unit
	// Unit returns the newest version of a unit, or a NotFound fault.
	Unit(ctx context.Context, name string) (*unit.Unit, error)
	// Busy returns how many runs hold a slot, and how many wait for one, by unit. A unit
	// without such runs isn't in the map.
	Busy() (running int, waiting map[string]int)
	// Room returns how much memory in bytes runs leave to others; below 0 they take more than
	// there is.
	Room() int64
}

// Measurer is a Kind whose runs take memory of one machine, up to their limits.
type Measurer interface {
	// Memory returns how much the machine has, in bytes, when that is known; 0 when ctx ends.
	Memory(ctx context.Context) int64
}

// memoryShare is the part of a machine's memory, in percent, that runs may take together where the operator says
// nothing.
const memoryShare = 80

// MemoryForRuns returns how much of a machine's memory, in bytes, runs may take together where the operator says
// nothing: whole MiB.
func MemoryForRuns(machine int64) int64 {
	return machine / 100 * memoryShare / quantity.MiB * quantity.MiB
}

// Sweeper is a Kind that leaves something outside of the homes, such as containers.
type Sweeper interface {
	// Ready returns a fault while nothing can be started.
	Ready(ctx context.Context) error
	// SweepRun removes what is left of a dead process's run.
	SweepRun(ctx context.Context, id string) error
	// SweepStrays removes what belongs to no run that is live.
	SweepStrays(ctx context.Context, live func(id string) bool) error
}

// Acceptor is a Kind with a word on units that are uploaded.
type Acceptor interface {
	// Accept gets an uploaded unit ready, or refuses it with a fault.
	Accept(ctx context.Context, u *unit.Unit) error
}

// ImagePruner is a Kind that makes images of units.
type ImagePruner interface {
	// PruneImages removes what it made for this home and none of the units needs, and returns
	// how much that is; with dryRun, how much it would be. It asks for the units when it knows
	// what there is, so that none that comes later loses its image.
	PruneImages(ctx context.Context, units func() ([]*unit.Unit, error), dryRun bool) (removed int, err error)
}

// Describer is a Kind whose units tell more of themselves than their contract.
type Describer interface {
	// Image returns the reference of a unit's image; "" where it has none.
	Image(u *unit.Unit) string
	// Program tells whether the program of a wrapped agent is in its image; nil: nobody has
	// looked yet, or the unit is of another kind. It starts nothing.
	Program(u *unit.Unit) *api.AgentProgram
	// StdinBytes returns how much a unit takes on stdin, or an Input fault for one that
	// takes none.
	StdinBytes(u *unit.Unit) (int64, error)
	// Card returns the model card of an Agentic Unit, or an Input fault for another one.
	Card(ctx context.Context, u *unit.Unit) (json.RawMessage, error)
}

// Talker is a Kind with units that aren't run, but talked with: a client has a session with
// their program.
type Talker interface {
	// Talks reports whether a unit is one of them.
	Talks(u *unit.Unit) bool
}

// Conductor is a Kind whose runs do nothing but lead others: they take no slot and no memory, have
// no second attempt, and keep steps instead of a list of what they call.
type Conductor interface {
	Conducts() bool
}

// NoSession is the fault of a session with a unit that is run.
func NoSession(u *unit.Unit) error {
	return fault.New(fault.Conflict, "%q isn't an MCP server, but of the kind %s", u.Name, fault.Quote(string(u.Kind))).
		WithHint("only units with kind: mcp in agent.yaml have sessions; run this one")
}

// Kinds are the kinds of unit that there are, by name.
type Kinds map[string]Kind

// Each goes through the kinds, each once: one may carry out units of several names.
func (k Kinds) Each() iter.Seq[Kind] {
	return func(yield func(Kind) bool) {
		seen := map[Kind]bool{}
		for _, name := range slices.Sorted(maps.Keys(k)) {
			if kind := k[name]; !seen[kind] {
				seen[kind] = true
				if !yield(kind) {
					return
				}
			}
		}
	}
}

// Open gives the home to every kind that wants it. The home is locked by then.
func (k Kinds) Open(home Home) error {
	for kind := range k.Each() {
		if opener, ok := kind.(Opener); ok {
			if err := opener.Open(home); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close is called when no run goes on.
func (k Kinds) Close() (err error) {
	for kind := range k.Each() {
		if opener, ok := kind.(Opener); ok {
			err = errors.Join(err, opener.Close())
		}
	}
	return err
}

// Conducts reports whether a name is that of a Conductor.
func (k Kinds) Conducts(name string) bool {
	conductor, is := k[name].(Conductor)
	return is && conductor.Conducts()
}

// Of returns the kind of a unit, or an Unsupported fault.
func (k Kinds) Of(u *unit.Unit) (Kind, error) {
	if known, ok := k[string(u.Kind)]; ok {
		return known, nil
	}
	return nil, fault.New(fault.Unsupported, "%q is a unit of the kind %s, which can't be run here", u.Name,
		fault.Quote(string(u.Kind)))
}
