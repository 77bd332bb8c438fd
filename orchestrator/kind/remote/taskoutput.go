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
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// textField is the field of the output that has the texts of a task.
const textField = "text"

// taskOutput is what a completed task has made.
type taskOutput struct {
	run   *run.Run
	task  a2apeer.Task
	files outputFiles
}

// take makes the run's output of what the task has made, and checks it against the unit's contract. Where ctx
// ends before that is done, its cause is the error.
func (o *taskOutput) take(ctx context.Context) (run.Result, error) {
	values, wrong := o.gatherData()
	if wrong != nil {
		return *wrong, nil
	}
	files := &o.files
	if err := files.gather(ctx, o.task.Artifacts); err != nil {
		return filesFailed(err)
	}
	files.name(values, o.run.Unit.Contract.Output)
	output, err := contract.NewPayload(values)
	if err == nil && int64(len(output.JSON())) > o.run.Limits.ResultBytes {
		return contractViolation(fmt.Sprintf("the agent's output has more than %d bytes", o.run.Limits.ResultBytes),
			"the setting payload_limit bounds what a unit may give"), nil
	}
	if err != nil {
		return outputsBreak(run.Undecodable(err)), nil
	}
	findings, err := o.run.Unit.Contract.Output.ValidateContext(ctx, output)
	if err != nil {
		return run.Result{}, err
	}
	if findings = append(findings, files.missing(o.run.Unit.Contract.Output, output)...); len(findings) > 0 {
		return outputsBreak(findings...), nil
	}
	delivered, err := files.deliver(output)
	if err != nil {
		return run.Result{}, err
	}
	return run.Result{State: api.Completed, Outcome: api.Success, Output: output.JSON(), Files: delivered}, nil
}

// gatherData puts the data of the task's artifacts together, later ones over earlier ones, and its texts.
func (o *taskOutput) gatherData() (values map[string]any, wrong *run.Result) {
	values = map[string]any{}
	data := false
	var texts []string
	for _, artifact := range o.task.Artifacts {
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
	if len(texts) == 0 && len(o.task.Artifacts) == 0 && o.task.Words != "" {
		texts = []string{o.task.Words} // some agents say it in their last status alone
	}
	if _, there := values[textField]; !there && len(texts) > 0 && (!data || o.hasText()) {
		values[textField] = strings.Join(texts, "\n")
	}
	return values, nil
}

// hasText reports whether the contract has a field for texts.
func (o *taskOutput) hasText() bool {
	return slices.ContainsFunc(o.run.Unit.Contract.Output.Fields(),
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

// filesFailed is the result of a task whose files can't be had.
func filesFailed(err error) (run.Result, error) {
	var over *overLimit
	if errors.As(err, &over) {
		return remoteEnd(api.LimitExceeded, api.RunError{
			Category: api.CategoryAgent, Kind: "output_limit", Message: over.message,
			Hint: "raise limits.output in agent.yaml if it needs that much",
		}), nil
	}
	return run.Result{}, err
}
