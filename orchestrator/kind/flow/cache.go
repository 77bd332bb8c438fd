package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// cachedCall returns what another call has to have in common with this one to stand for it.
func (h *host) cachedCall(u *handoff.Unit, c flow.Call) (run.CachedCall, error) {
	if c.Cache <= 0 {
		return run.CachedCall{}, nil
	}
	raw, err := flow.Encode(c.Input) // keys are sorted, and a file has its digest
	if err != nil {
		return run.CachedCall{}, err
	}
	sum := sha256.Sum256(raw)
	return run.CachedCall{
		Unit: u.Name, Version: h.Pinned()[u.Name], Input: hex.EncodeToString(sum[:]), Age: c.Cache,
	}, nil
}

// earlier takes a success again, unless something of it is gone.
func (h *host) earlier(ctx context.Context, u *handoff.Unit, c run.CachedCall) (flow.Result, bool) {
	if c.Age <= 0 {
		return flow.Result{}, false
	}
	result, ok := h.Earlier(ctx, c)
	if !ok {
		return flow.Result{}, false
	}
	output, err := h.output(ctx, u.Contract.Output, result)
	if err != nil {
		return flow.Result{}, false
	}
	return flow.Result{Run: result.ID, Output: output, Action: result.Action, Cached: true}, true
}
