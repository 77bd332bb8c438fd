package records

import (
	"context"
	"encoding/json"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// stepPage is how many steps are read at once, with their values.
const stepPage = 200

// Steps returns all steps of a run, with their values. The error is a fault.
func Steps(ctx context.Context, from StepRows, id string) (steps []flow.Step, err error) {
	for after := int64(0); ; {
		rows, err := from.List(ctx, id, after, stepPage)
		if err != nil || len(rows) == 0 {
			return steps, err
		}
		for _, row := range rows {
			step, err := stepOf(row)
			if err != nil {
				return nil, err
			}
			steps, after = append(steps, step), row.Seq
		}
	}
}

// StepRow returns a step as the store keeps it.
func StepRow(s flow.Step) (store.Step, error) {
	row := store.Step{
		Address: s.Address, Try: s.Try, State: string(s.State), Call: s.Run, Cached: s.Cached, Action: s.Action,
		Delta: s.Delta, Value: s.Value, Until: s.Until, Began: s.Began, Ended: s.Ended,
	}
	if s.Failure == nil {
		return row, nil
	}
	var err error
	row.Error, err = json.Marshal(s.Failure)
	return row, err
}

// stepOf is the inverse of StepRow. The error is a fault.
func stepOf(row store.Step) (flow.Step, error) {
	s := flow.Step{
		Address: row.Address, Try: row.Try, State: flow.StepState(row.State), Run: row.Call, Cached: row.Cached,
		Action: row.Action,
		Delta:  row.Delta, Value: row.Value, Until: row.Until, Began: row.Began, Ended: row.Ended,
	}
	if row.Error == nil {
		return s, nil
	}
	s.Failure = &flow.Failure{}
	if err := json.Unmarshal(row.Error, s.Failure); err != nil {
		return s, run.Corrupt(err)
	}
	return s, nil
}

// FlowCounts counts the steps of a run by what became of them.
func FlowCounts(ctx context.Context, from StepRows, id string) (api.FlowCounts, error) {
	states, err := from.Counts(ctx, id)
	counts := api.FlowCounts{Failed: states[string(flow.Failed)], Open: states[string(flow.Open)]}
	for _, n := range states {
		counts.Steps += n
	}
	return counts, err
}

// StepFilter selects steps of a run.
type StepFilter struct {
	After int64 // of Step.Seq
	Limit int   // 1..1000; 0 is 100
}

// Steps returns steps of a run without their values, in the order of their last changes. A
// run of a unit that isn't a flow has none.
func (f *Flows) Steps(ctx context.Context, id string, filter StepFilter) (api.StepPage, error) {
	if _, err := f.runs.Get(ctx, id); err != nil {
		return api.StepPage{}, err
	}
	limit, err := api.PageLimit(filter.Limit)
	if err != nil {
		return api.StepPage{}, err
	}
	rows, err := f.store.Steps.Heads(ctx, id, filter.After, limit)
	page := api.StepPage{Steps: make([]api.Step, 0, len(rows))}
	for _, row := range rows {
		step, err := shownStep(row)
		if err != nil {
			return api.StepPage{}, err
		}
		page.Steps = append(page.Steps, step)
	}
	if len(rows) == limit {
		page.Next = &rows[limit-1].Seq
	}
	return page, err
}

// Shown is a step without its values, as the API has it.
func Shown(s flow.Step) (api.Step, error) {
	row, err := StepRow(s)
	if err != nil {
		return api.Step{}, err
	}
	return shownStep(row)
}

func shownStep(row store.Step) (api.Step, error) {
	s := api.Step{
		Seq: row.Seq, Address: row.Address, Try: row.Try, State: api.StepState(row.State), Run: row.Call,
		Cached: row.Cached,
		Action: row.Action, Began: row.Began, Until: api.TimeOrNil(row.Until), Ended: api.TimeOrNil(row.Ended),
	}
	if row.Error == nil {
		return s, nil
	}
	if err := json.Unmarshal(row.Error, &s.Error); err != nil {
		return s, run.Corrupt(err)
	}
	return s, nil
}
