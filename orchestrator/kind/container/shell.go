package container

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// shell is the program of a run that is a shell in the sandbox of a unit's own program: see
// Extra.Console.
type shell struct {
	program // the unit's own
	console *runtime.Console
}

// programOfRun returns the program of a run: a shell, or that of its unit.
func (c *Containers) programOfRun(r *run.Run) program {
	own := programOf(r.Unit)
	if console := c.extra(r.Extra, r.Unit.Name).Console; console != nil {
		return shell{program: own, console: console}
	}
	return own
}

// shellTime is longer than anybody looks around in a sandbox.
const shellTime = 365 * 24 * time.Hour

// limits leaves out the time.
func (s shell) limits(of runtime.Limits) runtime.Limits {
	of = s.program.limits(of)
	of.Timeout = shellTime
	return of
}

func (shell) loadsAhead() bool { return false }

func (s shell) prepare(ctx context.Context, x *execution, spec *runtime.Spec, layout runtime.Layout) error {
	if err := s.program.prepare(ctx, x, spec, layout); err != nil {
		return err
	}
	spec.Console, spec.Control, spec.Durable = s.console, false, false
	return nil
}

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
