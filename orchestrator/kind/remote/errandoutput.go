package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// textField is the field of the output that has the texts of a task.
const textField = "text"

// takeOutput makes the run's output of what the task has made, and checks it against the unit's contract. Where ctx
// ends before that is done, its cause is the error.
func (e *errand) takeOutput(ctx context.Context) (run.Result, error) {
	values, wrong := e.gatherData()
	if wrong != nil {
		return *wrong, nil
	}
	files, err := e.gatherFiles(ctx)
	if err != nil {
		return e.filesFailed(err)
	}
	files.name(values, e.Unit.Contract.Output)
	output, err := contract.NewPayload(values)
	if err == nil && int64(len(output.JSON())) > e.Limits.ResultBytes {
		return contractViolation(fmt.Sprintf("the agent's output has more than %d bytes", e.Limits.ResultBytes),
			"the setting payload_limit bounds what a unit may give"), nil
	}
	if err != nil {
		return outputsBreak(run.Undecodable(err)), nil
	}
	findings, err := e.Unit.Contract.Output.ValidateContext(ctx, output)
	if err != nil {
		return run.Result{}, err
	}
	if findings = append(findings, files.missing(e.Unit.Contract.Output, output)...); len(findings) > 0 {
		return outputsBreak(findings...), nil
	}
	delivered, err := e.deliverFiles(files, output)
	if err != nil {
		return run.Result{}, err
	}
	return run.Result{State: api.Completed, Outcome: api.Success, Output: output.JSON(), Files: delivered}, nil
}

// gatherData puts the data of the task's artifacts together, later ones over earlier ones, and its texts.
func (e *errand) gatherData() (values map[string]any, wrong *run.Result) {
	values = map[string]any{}
	data := false
	var texts []string
	for _, artifact := range e.task.Artifacts {
		var text strings.Builder
		for _, part := range artifact.Parts {
			switch {
			case part.Text != nil:
				text.WriteString(*part.Text)
			case part.Data != nil:
				object, err := objectOf(part.Data)
				if err != nil {
					broken := outputsBreak(*err)
					return nil, &broken
				}
				data = true
				maps.Copy(values, object)
			}
		}
		if text.Len() > 0 {
			texts = append(texts, text.String())
		}
	}
	if len(texts) == 0 && len(e.task.Artifacts) == 0 && e.task.Words != "" {
		texts = []string{e.task.Words} // some agents say it in their last status alone
	}
	if _, there := values[textField]; !there && len(texts) > 0 && (!data || e.hasText()) {
		values[textField] = strings.Join(texts, "\n")
	}
	return values, nil
}

// hasText reports whether the contract has a field for texts.
func (e *errand) hasText() bool {
	return slices.ContainsFunc(e.Unit.Contract.Output.Fields(),
		func(f contract.Field) bool { return f.Name == textField })
}

// objectOf reads an object of an agent's.
func objectOf(raw json.RawMessage) (map[string]any, *fault.Finding) {
	payload, err := contract.Decode(raw, int64(max(len(raw), 1)))
	if err != nil {
		finding := run.Undecodable(err)
		return nil, &finding
	}
	var object map[string]any
	d := json.NewDecoder(bytes.NewReader(payload.JSON()))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		finding := run.Undecodable(err)
		return nil, &finding
	}
	return object, nil
}

// filesFailed is the result of an errand whose files can't be had.
func (e *errand) filesFailed(err error) (run.Result, error) {
	var over *overLimit
	if errors.As(err, &over) {
		return remoteEnd(api.LimitExceeded, api.RunError{
			Category: api.CategoryAgent, Kind: "output_limit", Message: over.message,
			Hint: "raise limits.output in agent.yaml if it needs that much",
		}), nil
	}
	return run.Result{}, err
}
