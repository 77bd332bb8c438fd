package orchestrator

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/keys"
	"github.com/agent-on-demand/aod/orchestrator/store"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// conducts reports whether the runs of a unit do nothing but lead others; see run.Conductor.
func (l *loop) conducts(u *unit.Unit) bool { return l.kinds.Conducts(string(u.Kind)) }

// KeepStep implements run.Host.
func (j *job) KeepStep(step flow.Step) error {
	row, err := records.StepRow(step)
	if err != nil {
		return err
	}
	event := newEvent(time.Now().UTC(), run.NodeEvent(step))
	err = j.loop.persist(j.loop.life, "keep step", j.ID, func() error {
		return j.loop.journal.Steps.Keep(context.WithoutCancel(j.loop.life), j.ID, row, event)
	})
	if err == nil {
		j.loop.metrics.StepKept(j.Record.Unit, step)
		j.live.News.Notify()
	}
	return err
}

// Steps implements run.Host.
func (j *job) Steps(ctx context.Context) ([]flow.Step, error) {
	return records.Steps(ctx, j.loop.journal.Steps, j.ID)
}

// noteSteps puts the counts of a flow's steps into its record, before the record is final.
func (j *job) noteSteps(ctx context.Context) {
	counts, err := records.FlowCounts(context.WithoutCancel(ctx), j.loop.journal.Steps, j.ID)
	if err != nil {
		j.loop.logger.Warn("steps not counted in the record", "run", j.ID, fault.LogAttr(err))
	}
	if last := j.Record.Flow; last != nil {
		counts.Action = last.Action
	}
	j.Record.Flow = &counts
}

// cacheKey is the key of a call's newest success; "" where the version of its unit isn't known:
// a command reads directories, which have none.
func (j *job) cacheKey(c run.CachedCall) string {
	if c.Version == "" || !j.Durable {
		return ""
	}
	return "cache/" + keys.TeamScope(j.owner().Team) + c.Unit + "/" + c.Version + "/" + c.Input
}

// Earlier implements run.Host. What was pruned is known no more.
func (j *job) Earlier(ctx context.Context, c run.CachedCall) (result handoff.Result, ok bool) {
	key := j.cacheKey(c)
	if key == "" {
		return result, false
	}
	id, _, err := j.loop.journal.Keys.Get(ctx, key)
	if err != nil {
		return result, false // it is made, which finds a broken store, too
	}
	record, err := j.loop.runs.Get(access.WithOwner(ctx, j.owner()), id)
	if err != nil || record.Outcome != api.Success || record.FinishedAt == nil ||
		time.Since(*record.FinishedAt) > c.Age {
		return result, false
	}
	return resultOf(record, func(f api.File) string { return j.loop.runs.FilePath(id, f.Name) }), true
}

// Remember implements run.Host.
func (j *job) Remember(ctx context.Context, c run.CachedCall, id string) {
	key := j.cacheKey(c)
	if key == "" {
		return
	}
	if err := j.loop.store.Keys.Point(context.WithoutCancel(ctx), store.Key{Value: key}, id); err != nil {
		j.loop.logger.Warn("success not remembered for a cache", "run", id, fault.LogAttr(err))
	}
}
