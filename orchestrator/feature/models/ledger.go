package models

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// ledgerStore implements gateway.Ledger for a run: what is reserved is stored before the request is
// forwarded.
type ledgerStore struct{ *account }

// entry is what the books say of a request, beside what it takes. The store finds call.model in it.
type entry struct {
	ID     string        `json:"id"`               // of the call; those of its attempts are alike
	Again  bool          `json:"again,omitempty"`  // an earlier attempt of the call was charged for
	Beside bool          `json:"beside,omitempty"` // another one was under way, and nobody knows what it took
	Call   api.ModelCall `json:"call"`
}

// errNoRoom is told of a request that doesn't wait.
var errNoRoom = errors.New("the budget has no room for it at the moment")

// Reserve implements gateway.Ledger.
func (b ledgerStore) Reserve(ctx context.Context, c gateway.Call, worst ledger.Amount) (gateway.Hold, error) {
	payers, err := b.payers.open(ctx, b.run)
	if err != nil {
		return nil, err
	}
	held, err := b.setAside(ctx, worst, c.Beside, append(payers, b.run.ID))
	if err != nil {
		return nil, err
	}
	row := store.ModelCall{At: held.At.UTC(), Tokens: worst.Tokens, Cost: worst.Cost}
	booked := entry{ID: c.ID, Again: c.Again, Beside: c.Beside, Call: api.ModelCall{
		At: row.At, Dialect: string(c.Dialect), Model: c.Model, Provider: c.Provider, Upstream: c.Upstream,
		Source: string(gateway.FromProvider), Stream: c.Stream,
	}}
	row.Data, _ = json.Marshal(booked) // none of it can fail
	if row.N, err = b.calls.Add(ctx, b.run.ID, row); err != nil {
		held.Settle(ledger.Amount{})
		return nil, err
	}
	return &hold{account: b.account, held: held, row: row, booked: booked}, nil
}

// setAside waits for room, unless the request is one beside another one of its call.
func (b ledgerStore) setAside(
	ctx context.Context, worst ledger.Amount, beside bool, accounts []string,
) (*ledger.Hold, error) {
	if !beside {
		return b.ledger.Reserve(ctx, worst, accounts...)
	}
	if held := b.ledger.TryReserve(worst, accounts...); held != nil {
		return held, nil
	}
	return nil, errNoRoom
}

// hold implements gateway.Hold.
type hold struct {
	account *account
	held    *ledger.Hold
	row     store.ModelCall
	booked  entry
}

// Settle implements gateway.Hold. What can't be stored is charged in full after a restart.
func (h *hold) Settle(ctx context.Context, _ gateway.Call, spent gateway.Spent) error {
	h.held.Settle(spent.Amount)
	h.row.Tokens, h.row.Cost = spent.Amount.Tokens, spent.Amount.Cost
	h.row.Settled, h.row.Estimated = true, spent.Estimated
	h.booked.Call.Tokens = tokensOf(spent.Usage)
	h.row.Data, _ = json.Marshal(h.booked) // none of it can fail
	h.account.spending.add(h.booked, h.row)
	return h.account.calls.Save(ctx, h.account.run.ID, h.row)
}

func tokensOf(u gateway.Usage) api.ModelTokens {
	return api.ModelTokens{
		Input: u.Input, Cached: u.Cached, CacheWrite: u.CacheWrite, Output: u.Output,
		Reasoning: u.Reasoning,
	}
}

// spending is what a run itself has spent on models.
type spending struct {
	mu    sync.Mutex
	usage api.ModelUsage
	free  int // calls that are listed though nobody charged for them
}

// add counts a request that a provider got. One whose process died before it was over is
// charged in full.
func (s *spending) add(b entry, row store.ModelCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.Add(charged(b, row))
	if b.Again { // the call is counted, and what was charged for its first attempt is estimated
		s.usage.Calls--
		if !b.Beside && (row.Estimated || !row.Settled) {
			s.usage.Estimated--
		}
	}
}

// charged returns what the books say of a request.
func charged(b entry, row store.ModelCall) api.ModelCall {
	c := b.Call
	c.Charged, c.Cost, c.Estimated = row.Tokens, api.Cost(row.Cost), row.Estimated || !row.Settled
	return c
}

// maxFree is how many calls of a run are listed that nobody charged for: no budget ends them.
const maxFree = 1000

// lists reports whether a call is listed with the run, and else counts it.
func (s *spending) lists(c api.ModelCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Charged > 0 || c.Cost > 0 {
		return true
	}
	if s.free++; s.free > maxFree {
		s.usage.Unlisted++
	}
	return s.free <= maxFree
}

func (s *spending) get() api.ModelUsage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}
