package container

import (
	"context"

	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/unit"
)

// program is what a unit's program does its own way: a capsule's works on /io, an Agentic
// Unit's from stdin to stdout.
type program interface {
	// noun is what a person calls the unit.
	noun() string
	// check refuses a request before anything starts.
	check(c *Containers, req run.Request, ready run.Input) error
	// limits returns what is in force, of what the run's are.
	limits(of runtime.Limits) runtime.Limits
	// loadsAhead reports whether a program that asks for its run may be loaded before it.
	loadsAhead() bool
	// waiting completes the spec of a sandbox whose run is to come.
	waiting(c *Containers, u *unit.Unit, spec *runtime.Spec) error
	// prepare completes the spec of an attempt, whose directory is layout.
	prepare(ctx context.Context, x *execution, spec *runtime.Spec, layout runtime.Layout) error
	// adopt completes the spec of a sandbox that an earlier process started.
	adopt(spec *runtime.Spec)
	// join passes on what comes and goes while the program runs, until end is called.
	join(ctx context.Context, x *execution, layout runtime.Layout) (end func())
	// collect takes the result of a program that was not stopped.
	collect(x *execution, end runtime.End) (run.Result, error)
	// wroteTooMuch says which limit a program met that was stopped while it wrote.
	wroteTooMuch(limits runtime.Limits) *runtime.LimitError
}

// programs are those of the kinds of unit that run in containers.
var programs = map[unit.Kind]program{unit.Capsule: capsuleProgram{}, unit.AU: agenticUnit{}}

// programOf returns the program of a unit.
func programOf(u *unit.Unit) program {
	if known, ok := programs[u.Kind]; ok {
		return known
	}
	return capsuleProgram{}
}

// isAgenticUnit reports whether a unit reads stdin and has a model card.
func isAgenticUnit(u *unit.Unit) bool {
	_, is := programOf(u).(agenticUnit)
	return is
}
