package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const resultPath = "/io/output.json"

// collector takes what the program of a run left.
type collector struct{ run *run.Run }

// takeResult reads, validates and delivers the output of a program that ended well.
func (c *collector) takeResult(ctx context.Context, layout runtime.Layout, limits runtime.Limits) (run.Result, error) {
	raw, finding, err := layout.ReadResult(limits.ResultBytes)
	if err != nil {
		return run.Result{}, err
	}
	if finding != nil {
		return contractViolation(*finding), nil
	}
	output, err := contract.Decode(raw, limits.ResultBytes)
	if err != nil {
		return contractViolation(run.Undecodable(err)), nil
	}
	return c.takeOutput(ctx, output, layout, limits)
}

func (c *collector) takeOutput(
	ctx context.Context, output contract.Payload, layout runtime.Layout, limits runtime.Limits,
) (run.Result, error) {
	listing, err := layout.Collect(limits)
	var over *runtime.LimitError
	if errors.As(err, &over) {
		return exceeded(0, over), nil
	}
	if err != nil {
		return run.Result{}, err
	}
	findings, err := c.checkOutput(ctx, output, layout)
	if err != nil {
		return run.Result{}, err
	}
	if len(findings) > 0 {
		return contractViolation(findings...), nil
	}
	return c.deliver(output, listing, layout)
}

func (c *collector) checkOutput(
	ctx context.Context, output contract.Payload, layout runtime.Layout,
) ([]fault.Finding, error) {
	root, err := layout.OutputRoot()
	if err != nil {
		return nil, fmt.Errorf("check output: %w", err)
	}
	defer func() { _ = root.Close() }() // read only
	schema := c.run.Unit.Contract.Output
	findings, err := schema.ValidateContext(ctx, output)
	if err != nil {
		return nil, err
	}
	return append(findings, schema.CheckFiles(output, contract.StageOutput, root)...), nil
}

// deliver moves the output files out of the attempt's directory.
func (c *collector) deliver(
	output contract.Payload, listing runtime.Listing, layout runtime.Layout,
) (run.Result, error) {
	delivered, err := c.moveOut(listing.Files, layout)
	if err != nil {
		c.run.Keep = true // the work is done: nothing of it shall be lost
		return run.Result{}, err
	}
	if len(listing.Skipped) > 0 {
		c.run.Warn("left behind in /io/output: %s", strings.Join(listing.Skipped, ", ")+more(listing.Extra))
	}
	success := 0
	return run.Result{
		State: api.Completed, Outcome: api.Success, ExitCode: &success,
		Output: output.JSON(), Files: c.run.Delivered(delivered, output),
	}, nil
}

// moveOut moves the files to the directory that the user asked for, or to that of the run.
func (c *collector) moveOut(found []runtime.Found, layout runtime.Layout) ([]runtime.File, error) {
	if c.run.OutDir == "" {
		return layout.Publish(found, c.run.OutputDir())
	}
	return layout.Deliver(found, c.run.OutDir)
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// contractViolation is the result of a run that exited with 0 without a valid result.
func contractViolation(findings ...fault.Finding) run.Result {
	for i := range findings {
		if findings[i].File == "" {
			findings[i].File = resultPath
		}
	}
	return run.Failed(api.ContractViolation, exitContract, &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.ContractViolation),
		Message:  "the capsule exited with 0, but its result breaks the contract",
		Hint:     "see `output` in the capsule's schema.json; `aod run --keep` leaves what it wrote for a look",
		Findings: findings,
	})
}

// takeError returns the result of a run whose program failed by itself. /io/output.json may
// hold its reason: {"error": {"type": …, "message": …}} or {"error": "…"}.
func takeError(end runtime.End, layout runtime.Layout, limits runtime.Limits) (run.Result, error) {
	failure := &api.RunError{
		Category: api.CategoryAgent,
		Message:  fmt.Sprintf("the capsule failed with exit code %d", end.ExitCode),
		Hint:     "its log says more",
	}
	if end.EngineError != "" {
		failure.Message += ": " + run.Bounded(end.EngineError, run.MaxMessage)
	}
	raw, _, err := layout.ReadResult(limits.ResultBytes)
	if err != nil {
		return run.Result{}, err
	}
	if kind, message := reportedError(raw, limits.ResultBytes); message != "" {
		failure.Type, failure.Message, failure.Hint = kind, message, ""
	}
	if failure.Type == rejected {
		failure.Category = api.CategoryPermanent
	}
	outcome := api.CapsuleError
	if failure.Type == contractError && end.ExitCode == exitContract {
		outcome = api.ContractViolation
	}
	failure.Kind = string(outcome)
	return run.Failed(outcome, end.ExitCode, failure), nil
}

// rejected is the type of error with which a program says that it has looked at what it is asked
// for and won't do it.
const rejected = "Rejected"

// contractError is the type of error that a bridge reports for a result that breaks the
// contract. The outcome is then the same as if AOD had found it.
const contractError = "ContractError"

// reportedError reads the error that a failed capsule reports. AOD only shows it.
func reportedError(raw []byte, limit int64) (kind, message string) {
	payload, err := contract.Decode(raw, limit)
	if err != nil {
		return "", ""
	}
	var told struct {
		Error json.RawMessage `json:"error"`
	}
	var parts struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(payload.JSON(), &told) != nil {
		return "", ""
	}
	if json.Unmarshal(told.Error, &parts.Message) == nil {
		return "", run.Bounded(parts.Message, run.MaxMessage)
	}
	if json.Unmarshal(told.Error, &parts) != nil {
		return "", ""
	}
	return run.Bounded(parts.Type, run.MaxType), run.Bounded(parts.Message, run.MaxMessage)
}
