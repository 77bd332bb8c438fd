package orchestrator

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// stepPage is how many steps are read at once, with their values.
const stepPage = 200

// conducts reports whether the runs of a unit do nothing but lead others; see run.Conductor.
func (l *loop) conducts(u *unit.Unit) bool { return l.kinds.Conducts(string(u.Kind)) }

// KeepStep implements run.Host.
func (j *job) KeepStep(step flow.Step) error {
	row, err := stepRow(step)
	if err != nil {
		return err
	}
	event := newEvent(time.Now().UTC(), run.NodeEvent(step))
	err = j.loop.persist(j.loop.life, "keep step", j.ID, func() error {
		return j.loop.journal.KeepStep(context.WithoutCancel(j.loop.life), j.ID, row, event)
	})
	if err == nil {
		j.loop.metrics.StepKept(j.Record.Unit, step)
		j.news.Notify()
	}
	return err
}

// Steps implements run.Host.
func (j *job) Steps(ctx context.Context) ([]flow.Step, error) { return j.loop.stepsOf(ctx, j.ID) }

// stepsOf returns all steps of a run, with their values. The error is a fault.
func (l *loop) stepsOf(ctx context.Context, id string) (steps []flow.Step, err error) {
	for after := int64(0); ; {
		rows, err := l.journal.Steps(ctx, id, after, stepPage)
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

func stepRow(s flow.Step) (store.Step, error) {
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

// stepOf is the inverse of stepRow. The error is a fault.
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
		return s, undecodable(err)
	}
	return s, nil
}

// noteSteps puts the counts of a flow's steps into its record, before the record is final.
func (j *job) noteSteps(ctx context.Context) {
	counts, err := j.loop.flowCounts(context.WithoutCancel(ctx), j.ID)
	if err != nil {
		j.loop.logger.Warn("steps not counted in the record", "run", j.ID, fault.LogAttr(err))
	}
	if last := j.Record.Flow; last != nil {
		counts.Action = last.Action
	}
	j.Record.Flow = &counts
}

func (l *loop) flowCounts(ctx context.Context, id string) (api.FlowCounts, error) {
	states, err := l.journal.StepCounts(ctx, id)
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

// StepList returns steps of a run without their values, in the order of their last changes. A
// run of a unit that is no flow has none.
func (s *Service) StepList(ctx context.Context, id string, f StepFilter) (api.StepPage, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return api.StepPage{}, err
	}
	limit, err := api.PageLimit(f.Limit)
	if err != nil {
		return api.StepPage{}, err
	}
	rows, err := s.store.StepHeads(ctx, id, f.After, limit)
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

func shownStep(row store.Step) (api.Step, error) {
	s := api.Step{
		Seq: row.Seq, Address: row.Address, Try: row.Try, State: api.StepState(row.State), Run: row.Call,
		Cached: row.Cached,
		Action: row.Action, Began: row.Began, Until: orNil(row.Until), Ended: orNil(row.Ended),
	}
	if row.Error == nil {
		return s, nil
	}
	if err := json.Unmarshal(row.Error, &s.Error); err != nil {
		return s, undecodable(err)
	}
	return s, nil
}

func orNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
