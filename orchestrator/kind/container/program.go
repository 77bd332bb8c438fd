package container

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api"
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
	check(m *machine, req run.Request, ready run.Input) error
	// limits returns the limits in force, given those of the run.
	limits(of runtime.Limits) runtime.Limits
	// loadsAhead reports whether the program may be loaded before its run is known.
	loadsAhead() bool
	// waiting completes the spec of a warm sandbox.
	completeWarmSpec(m *machine, u *unit.Unit, spec *runtime.Spec) error
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

// capsuleProgram is the program of a capsule: it reads /io/input.json and leaves
// /io/output.json.
type capsuleProgram struct{}

func (capsuleProgram) noun() string { return "capsule" }

func (capsuleProgram) check(*machine, run.Request, run.Input) error { return nil }

func (capsuleProgram) limits(of runtime.Limits) runtime.Limits { return of }

func (capsuleProgram) loadsAhead() bool { return true }

func (capsuleProgram) completeWarmSpec(*machine, *unit.Unit, *runtime.Spec) error { return nil }

func (capsuleProgram) prepare(context.Context, *execution, *runtime.Spec, runtime.Layout) error {
	return nil
}

func (capsuleProgram) adopt(*execution, *runtime.Spec) {}

func (capsuleProgram) collect(ctx context.Context, x *execution, end runtime.End) (run.Result, error) {
	a := x.attempt
	if end.ExitCode != 0 {
		return takeError(end, a.layout, a.limits)
	}
	x.verdict.noteLimits(end)
	return x.collector.takeResult(ctx, a.layout, a.limits)
}

func (p capsuleProgram) wroteTooMuch(limits runtime.Limits) *runtime.LimitError {
	return wroteLargeFile(p.noun(), limits)
}

func wroteLargeFile(noun string, limits runtime.Limits) *runtime.LimitError {
	return &runtime.LimitError{
		Limit: "output",
		Message: fmt.Sprintf("the %s was stopped when it wrote a file of more than %s", noun,
			megabytes(limits.DiskBytes)),
		Hint: "raise limits.output in agent.yaml if that is meant: twice as much may be written while running",
	}
}

// shell is the program of a run that is a shell in the sandbox of a unit's own program: see
// Extra.Console.
type shell struct {
	own     program // the unit's
	console *runtime.Console
}

// programOfRun returns the program of a unit's run: a shell where it has a console.
func programOfRun(u *unit.Unit, console *runtime.Console) program {
	if console != nil {
		return shell{own: programOf(u), console: console}
	}
	return programOf(u)
}

func (s shell) noun() string { return s.own.noun() }

func (s shell) check(m *machine, req run.Request, ready run.Input) error {
	return s.own.check(m, req, ready)
}

// shellTime is longer than anybody looks around in a sandbox.
const shellTime = 365 * 24 * time.Hour

// limits leaves out the time.
func (s shell) limits(of runtime.Limits) runtime.Limits {
	of = s.own.limits(of)
	of.Timeout = shellTime
	return of
}

func (shell) loadsAhead() bool { return false }

func (s shell) completeWarmSpec(m *machine, u *unit.Unit, spec *runtime.Spec) error {
	return s.own.completeWarmSpec(m, u, spec)
}

func (s shell) prepare(ctx context.Context, x *execution, spec *runtime.Spec, layout runtime.Layout) error {
	if err := s.own.prepare(ctx, x, spec, layout); err != nil {
		return err
	}
	spec.Mode, spec.Console, spec.Durable = runtime.ModeConsole, s.console, false
	return nil
}

func (s shell) adopt(x *execution, spec *runtime.Spec) { s.own.adopt(x, spec) }

// collect takes the shell's exit code. What it left in /io is gone with the sandbox.
func (shell) collect(_ context.Context, _ *execution, end runtime.End) (run.Result, error) {
	if end.ExitCode == 0 {
		return run.Result{State: api.Completed, Outcome: api.Success, ExitCode: &end.ExitCode}, nil
	}
	return run.Failed(api.CapsuleError, end.ExitCode, &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.CapsuleError),
		Message: fmt.Sprintf("the shell exited with %d", end.ExitCode),
	}), nil
}

func (s shell) wroteTooMuch(limits runtime.Limits) *runtime.LimitError {
	return s.own.wroteTooMuch(limits)
}
