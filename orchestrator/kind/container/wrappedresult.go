package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// collect decides what the end of a wrapped agent means that wasn't stopped.
func (wrappedAgent) collect(ctx context.Context, x *execution, end runtime.End) (run.Result, error) {
	c, err := wrappedOf(x.Unit)
	if err != nil {
		return run.Result{}, err
	}
	output, err := x.readWrapped(c)
	if err != nil {
		return run.Result{}, err
	}
	x.noteWrapped(output)
	if lost := x.keepOwnSession(output.Session); lost != nil {
		return run.Result{}, lost
	}
	switch {
	case end.ExitCode != 0 || output.Wrong == nil && output.Failed:
		return wrappedFailed(c, end.ExitCode, output), nil
	case output.Wrong != nil:
		return wrongOutput(*output.Wrong), nil
	}
	x.noteLimits(end)
	payload, err := contract.NewPayload(output.Document)
	if err != nil {
		return wrongOutput(run.Undecodable(err)), nil
	}
	return x.takeOutput(ctx, payload, x.attempt.layout, x.attempt.limits)
}

// readWrapped reads what the program left, on stdout or in its file.
func (x *execution) readWrapped(c *capsule.Capsule) (capsule.AgentOutput, error) {
	f, wrong, err := x.openOutput(c.AgentOutputFile(x.ID))
	if err != nil || wrong != nil {
		return capsule.AgentOutput{Wrong: wrong}, err
	}
	defer func() { _ = f.Close() }() // read only
	output, err := c.ReadAgentOutput(f, x.attempt.limits.ResultBytes)
	if err != nil {
		return output, fmt.Errorf("read output: %w", err)
	}
	return output, nil
}

// openOutput opens the program's output: a file in the workspace, or stdout where that has no
// name. wrong says of a file why it is none.
func (x *execution) openOutput(name string) (f *os.File, wrong *fault.Finding, err error) {
	if name == "" {
		f, err = x.attempt.layout.OpenStdout()
	} else {
		f, err = x.attempt.layout.OpenFile(name)
	}
	var special *safefs.Irregular
	switch {
	case err == nil:
		return f, nil, nil
	case name == "":
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, &fault.Finding{
			Message: "the file of agent.output_file was not written",
			Hint:    "it is " + path.Join(runtime.Workspace, name) + " in the sandbox",
		}, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, &fault.Finding{
			Message: "the file of agent.output_file can't be read: its permissions are closed",
			Hint:    "have it written with mode 0644",
		}, nil
	case errors.As(err, &special):
		return nil, &fault.Finding{
			Message: "the file of agent.output_file " + special.Error(),
			Hint:    "links and special files are never followed",
		}, nil
	}
	return nil, nil, fmt.Errorf("open output: %w", err)
}

// noteWrapped records what the program tells of itself.
func (x *execution) noteWrapped(output capsule.AgentOutput) {
	x.Record.AgentSession, x.Record.AgentUsage, x.Record.CostUSD = output.Session, output.Usage, output.CostUSD
	if output.Skipped > 0 {
		x.Warn("%d lines of the agent's output are no JSON objects, and were left out", output.Skipped)
	}
}

// wrappedFailed is the result of an agent that failed by itself.
func wrappedFailed(c *capsule.Capsule, exit int, output capsule.AgentOutput) run.Result {
	failure := &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.CapsuleError),
		Message: fmt.Sprintf("the agent failed with exit code %d", exit),
		Hint:    "its log, which is its stderr, says more",
	}
	if category, ok := c.Wrapped.ExitCodes[exit]; ok {
		failure.Category = api.Category(category)
	}
	if exit == 0 {
		failure.Message = "the agent says that it failed"
	}
	if output.Reason != "" {
		failure.Message, failure.Hint = run.Bounded(output.Reason, run.MaxMessage), ""
	}
	return run.Failed(api.CapsuleError, max(exit, exitContract), failure)
}

// wrongOutput is the result of an agent that exited with 0, and whose output isn't what its
// agent.yaml says.
func wrongOutput(wrong fault.Finding) run.Result {
	return run.Failed(api.ContractViolation, exitContract, &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.ContractViolation),
		Message: "the agent exited with 0, but " + wrong.Message, Hint: wrong.Hint,
	})
}
