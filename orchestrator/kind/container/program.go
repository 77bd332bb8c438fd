package container

import (
	"context"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// program is how the program of a unit gets its input and gives its result: a capsule works on
// /io, an Agentic Unit from stdin to stdout.
type program interface {
	// noun is the word for the unit in messages.
	noun() string
	// check refuses a request before anything starts.
	check(c *Containers, req run.Request, ready run.Input) error
	// limits returns the limits in force, given those of the run.
	limits(of runtime.Limits) runtime.Limits
	// loadsAhead reports whether the program may be loaded before its run is known.
	loadsAhead() bool
	// waiting completes the spec of a warm sandbox.
	waiting(c *Containers, u *unit.Unit, spec *runtime.Spec) error
	// prepare completes the spec of an attempt, whose directory is that of layout.
	prepare(ctx context.Context, x *execution, spec *runtime.Spec, layout runtime.Layout) error
	// adopt completes the spec of a sandbox that an earlier process started.
	adopt(x *execution, spec *runtime.Spec)
	// collect takes the result of a program that was not stopped.
	collect(ctx context.Context, x *execution, end runtime.End) (run.Result, error)
	// wroteTooMuch returns the limit of a program that was stopped because it wrote too much.
	wroteTooMuch(limits runtime.Limits) *runtime.LimitError
}

// programs are those of the kinds of unit that run in containers.
var programs = map[unit.Kind]program{
	unit.Capsule: capsuleProgram{}, unit.AU: agenticUnit{}, unit.MCP: mcpServer{},
	unit.Agent: wrappedAgent{},
}

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
