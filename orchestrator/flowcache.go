package orchestrator

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// cacheKey is the key of a call's newest success; "" where the version of its unit isn't known:
// a command reads directories, which have none.
func (j *job) cacheKey(c run.CachedCall) string {
	version := j.pinned()[c.Unit]
	if version == "" || !j.Durable {
		return ""
	}
	return "cache/" + c.Unit + "/" + version + "/" + c.Input
}

// Earlier implements run.Host. What was pruned is known no more.
func (j *job) Earlier(ctx context.Context, c run.CachedCall) (result handoff.Result, ok bool) {
	key := j.cacheKey(c)
	if key == "" {
		return result, false
	}
	id, _, err := j.loop.journal.ByKey(ctx, key)
	if err != nil {
		return result, false // it is made, which finds a broken store, too
	}
	record, err := j.loop.Get(ctx, id)
	if err != nil || record.Outcome != api.Success || record.FinishedAt == nil ||
		time.Since(*record.FinishedAt) > c.Age {
		return result, false
	}
	return resultOf(record, func(f api.File) string { return j.loop.FilePath(id, f.Name) }), true
}

// Remember implements run.Host.
func (j *job) Remember(ctx context.Context, c run.CachedCall, id string) {
	key := j.cacheKey(c)
	if key == "" {
		return
	}
	if err := j.loop.store.PointKey(context.WithoutCancel(ctx), store.Key{Value: key}, id); err != nil {
		j.loop.logger.Warn("success not remembered for a cache", "run", id, fault.LogAttr(err))
	}
}
