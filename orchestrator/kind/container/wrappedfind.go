package container

import (
	"context"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// FindProgram has the init of a sandbox look up the program of a wrapped agent, as it does
// before a run, and starts nothing. observe gets the steps of the image's build, and may be
// nil. The error is a Capsule fault where the program isn't there, or can't be executed.
func (c *Containers) FindProgram(ctx context.Context, u *unit.Unit, observe func(run.Event)) error {
	wrapped, err := wrappedOf(u)
	if err != nil {
		return err
	}
	return c.besideRuns(ctx, u, observe, func(_ *run.Run, spec runtime.Spec, dir string) error {
		wrap(&spec, wrapped)
		spec.Stdio, spec.Find = nil, true
		spec.Purpose, spec.Network = "find", "none"
		layout, err := c.newLayout(filepath.Join(dir, "find"), spec.Image, "")
		if err != nil {
			return err
		}
		log := runtime.NewLog(spec.Limits.LogBytes, func(runtime.LogLine) {})
		end, err := c.startToEnd(ctx, spec, layout.At(c.engine, spec), log, spec.Limits.Timeout)
		if err != nil || end.ExitCode == 0 {
			return err
		}
		return fault.New(fault.Capsule, "the program of %q is not there: %s", u.Name, end.Report.StartError).
			WithHint("see agent.command in agent.yaml: a path, or a name in the PATH of the image")
	})
}
