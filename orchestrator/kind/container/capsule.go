package container

import (
	"context"
	"fmt"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// capsuleProgram is the program of a capsule: it reads /io/input.json and leaves
// /io/output.json.
type capsuleProgram struct{}

func (capsuleProgram) noun() string { return "capsule" }

func (capsuleProgram) check(*Containers, run.Request, run.Input) error { return nil }

func (capsuleProgram) limits(of runtime.Limits) runtime.Limits { return of }

func (capsuleProgram) loadsAhead() bool { return true }

func (capsuleProgram) waiting(*Containers, *unit.Unit, *runtime.Spec) error { return nil }

func (capsuleProgram) prepare(context.Context, *execution, *runtime.Spec, runtime.Layout) error {
	return nil
}

func (capsuleProgram) adopt(*execution, *runtime.Spec) {}

func (capsuleProgram) collect(ctx context.Context, x *execution, end runtime.End) (run.Result, error) {
	a := x.attempt
	if end.ExitCode != 0 {
		return takeError(end, a.layout, a.limits)
	}
	x.noteLimits(end)
	return x.takeResult(ctx, a.layout, a.limits)
}

func (capsuleProgram) wroteTooMuch(limits runtime.Limits) *runtime.LimitError {
	return &runtime.LimitError{
		Limit: "output",
		Message: fmt.Sprintf("the capsule was stopped when it wrote a file of more than %s",
			megabytes(limits.DiskBytes)),
		Hint: "raise limits.output in agent.yaml if that is meant: twice as much may be written while running",
	}
}
