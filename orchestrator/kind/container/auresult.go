package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// collect decides what the end of an Agentic Unit means that wasn't stopped. The exit code
// decides, and with 0 the stdout has to keep the specification.
func (agenticUnit) collect(_ context.Context, x *execution, end runtime.End) (run.Result, error) {
	switch exit := au.ExitMeaning(end.ExitCode, x.card); exit.Class {
	case au.ExitSuccess:
	case au.ExitNotStarted:
		return programMissing(x.Record.Unit, end.ExitCode, "").result(), nil
	default:
		return unitFailed(exit), nil
	}
	f, err := x.attempt.layout.OpenStdout()
	if err != nil {
		return run.Result{}, fmt.Errorf("read stdout: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	output, err := au.ParseOutput(f, x.attempt.limits.ResultBytes)
	var wrong *au.OutputError
	if errors.As(err, &wrong) {
		return wrongStdout(wrong), nil
	}
	if err != nil {
		return run.Result{}, fmt.Errorf("read stdout: %w", err)
	}
	for _, warning := range output.Warnings() {
		x.Warn("%s", warning)
	}
	x.noteLimits(end)
	success := 0
	return run.Result{State: api.Completed, Outcome: api.Success, ExitCode: &success, Output: output.JSON()}, nil
}

// unitFailed is the result of a unit that failed by itself.
func unitFailed(exit au.Exit) run.Result {
	category := api.CategoryAgent
	if exit.Class == au.ExitInvalidInput {
		category = api.CategoryPermanent
	}
	return run.Failed(api.CapsuleError, exit.Code, &api.RunError{
		Category: category, Kind: string(exit.Class),
		Message: fmt.Sprintf("the unit failed: %s (exit code %d)", run.Bounded(exit.Name, run.MaxType), exit.Code),
		Hint:    "its log, which is its stderr, says more",
	})
}

// wrongStdout is the result of a unit that exited with 0 without a valid stdout.
func wrongStdout(wrong *au.OutputError) run.Result {
	return run.Failed(api.ContractViolation, exitContract, &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.ContractViolation), Type: string(wrong.Problem),
		Message: "the unit exited with 0, but its stdout is not one JSON document: " + wrong.Message,
		Hint:    wrong.Hint,
	})
}

// wroteTooMuch returns the limit of a unit that wrote too much, to stdout or to a file.
func (agenticUnit) wroteTooMuch(limits runtime.Limits) *runtime.LimitError {
	return &runtime.LimitError{
		Limit: "output",
		Message: fmt.Sprintf("the unit was stopped when it had written %s, to stdout or to a file; its result "+
			"may have %s", megabytes(limits.DiskBytes), megabytes(limits.ResultBytes)),
	}
}
