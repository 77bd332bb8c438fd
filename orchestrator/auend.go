package orchestrator

import (
	"errors"
	"fmt"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/runtime"
)

// concludeAU decides what the end of an Agentic Unit means that wasn't stopped: its exit code
// says it, and its stdout has to be what the specification asks for.
func (r *Run) concludeAU(end runtime.End, layout runtime.Layout, limits runtime.Limits) (conclusion, error) {
	if end.ExitCode != 0 {
		return refusedBy(au.ExitMeaning(end.ExitCode, r.card)), nil
	}
	f, err := layout.OpenStdout()
	if err != nil {
		return conclusion{}, fmt.Errorf("read stdout: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	output, err := au.ParseOutput(f, limits.ResultBytes)
	var wrong *au.OutputError
	if errors.As(err, &wrong) {
		return misprinted(wrong), nil
	}
	if err != nil {
		return conclusion{}, fmt.Errorf("read stdout: %w", err)
	}
	for _, warning := range output.Warnings() {
		r.warn("%s", warning)
	}
	r.noteLimits(end)
	success := 0
	return conclusion{state: api.Completed, outcome: api.Success, exit: &success, output: output.JSON()}, nil
}

// refusedBy concludes a unit that failed by itself.
func refusedBy(exit au.Exit) conclusion {
	category := api.CategoryAgent
	if exit.Class == au.ExitInvalidInput {
		category = api.CategoryPermanent
	}
	return failed(api.CapsuleError, exit.Code, &api.RunError{
		Category: category, Kind: string(exit.Class),
		Message: fmt.Sprintf("the unit failed: %s (exit code %d)", bounded(exit.Name, maxType), exit.Code),
		Hint:    "its log, which is its stderr, says more",
	})
}

// misprinted concludes a unit that exited with 0 without a result.
func misprinted(wrong *au.OutputError) conclusion {
	return failed(api.ContractViolation, exitContract, &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.ContractViolation), Type: string(wrong.Problem),
		Message: "the unit exited with 0, but its stdout is not one JSON document: " + wrong.Message,
		Hint:    wrong.Hint,
	})
}

// overprinted concludes a unit that was stopped while it printed and printed.
func overprinted(end runtime.End, limits runtime.Limits) conclusion {
	return exceeded(end.ExitCode, &runtime.LimitError{
		Limit:   "output",
		Message: fmt.Sprintf("the unit was stopped when it had written %s, to stdout or to a file; its result may have %s", megabytes(limits.DiskBytes), megabytes(limits.ResultBytes)),
	})
}
