package models

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Quota is what may be spent on models in a day and in a month of the calendar, in UTC. 0 bounds nothing.
type Quota struct{ Day, Month ledger.Amount }

// Quotas are those of teams, and of tokens, by their names.
type Quotas struct{ Teams, Tokens map[string]Quota }

// payer is a team, or a token, on whose account it goes what runs ask models.
type payer struct {
	team, token string // one of them
}

// String returns how its settings are called, and its account.
func (p payer) String() string {
	if p.token != "" {
		return "tokens." + p.token
	}
	return "teams." + p.team
}

// payersOf are those of a run: its owner's.
func payersOf(r *run.Run) []payer {
	all := []payer{{team: api.TeamOf(r.Record.Owner)}}
	if r.Record.By != "" {
		all = append(all, payer{token: r.Record.By})
	}
	return all
}

// usages tell what was spent before.
type usages interface {
	Sums(ctx context.Context, f store.UsageFilter) ([]store.Usage, error)
}

// payers have an account each with a window for the day and one for the month, from the first call in this process on,
// also without a quota: one may come while calls go on. What was spent before is what the store has of the time.
type payers struct {
	ledger *ledger.Tree
	usages usages // nil: no run outlives the process, and nobody has a quota

	mu     sync.Mutex
	budget ledger.Amount // of a tree of runs
	quotas Quotas
	opened map[payer]bool
}

func newPayers(accounts *ledger.Tree) *payers {
	return &payers{ledger: accounts, opened: map[payer]bool{}}
}

// set has another budget hold for trees that begin from now on, and other quotas also for calls that wait.
func (s *payers) set(budget ledger.Amount, q Quotas) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget, s.quotas = budget, q
	for p := range s.opened {
		s.ledger.OpenWindows(p.String(), s.windows(p)...)
	}
}

// The names of windows, as settings have them.
const (
	day   = "day"
	month = "month"
)

// windows are those of an account, with nothing spent. The caller holds the lock.
func (s *payers) windows(p payer) []ledger.Window {
	q := s.quotas.Teams[p.team]
	if p.token != "" {
		q = s.quotas.Tokens[p.token]
	}
	return []ledger.Window{
		{Name: day, Limit: q.Day, Ends: ledger.NextDay}, {Name: month, Limit: q.Month, Ends: ledger.NextMonth},
	}
}

// open returns the accounts of those who pay for a run.
func (s *payers) open(ctx context.Context, r *run.Run) (ids []string, err error) {
	if s.usages == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range payersOf(r) {
		if err := s.openOne(ctx, p); err != nil {
			return nil, err
		}
		ids = append(ids, p.String())
	}
	return ids, nil
}

// openOne opens an account, unless it is. The caller holds the lock.
func (s *payers) openOne(ctx context.Context, p payer) error {
	if s.opened[p] || s.usages == nil {
		return nil
	}
	windows, now := s.windows(p), time.Now().UTC()
	for i, since := range []time.Time{
		time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC),
		time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC),
	} {
		owned := store.Owned{By: p.token}
		if p.token == "" {
			owned.Teams = []string{p.team}
		}
		sums, err := s.usages.Sums(ctx, store.UsageFilter{Since: since, Owned: owned})
		if err != nil {
			return err
		}
		for _, sum := range sums {
			windows[i].Spent = windows[i].Spent.Plus(ledger.Amount{Tokens: sum.Tokens, Cost: sum.Cost})
		}
	}
	s.ledger.OpenWindows(p.String(), windows...)
	s.opened[p] = true
	return nil
}

// ofTree returns the budget of a tree of runs; 0 bounds nothing.
func (s *payers) ofTree() ledger.Amount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.budget
}

// limits are the budget of its tree, and those of who pays for a run.
func (s *payers) limits(r *run.Run) (limits []ledger.Amount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limits = append(limits, s.budget)
	for _, p := range payersOf(r) {
		for _, w := range s.windows(p) {
			limits = append(limits, w.Limit)
		}
	}
	return limits
}

// check returns a Quota fault where who pays for a run has nothing left.
func (s *payers) check(ctx context.Context, r *run.Run) error {
	if _, err := s.open(ctx, r); err != nil {
		return err
	}
	for _, p := range payersOf(r) {
		for _, q := range s.quotasOf(p) {
			if q.spent >= q.limit {
				return fault.New(fault.Quota, "%s of %s are spent (%s), and %q asks models", q.text(q.spent),
					q.text(q.limit), q.rule, r.Record.Unit).
					WithHint("wait until %s, when all of it is left again, or have the operator raise it",
						q.opens.Format(time.RFC3339))
			}
		}
	}
	return nil
}

// bound is a limit of one window of an account.
type bound struct {
	of                     payer
	rule                   string
	limit, spent, reserved int64
	opens                  time.Time
	text                   func(n int64) string
}

// quotasOf are the bounds that there are of an account that is open.
func (s *payers) quotasOf(p payer) (list []bound) {
	for _, w := range s.ledger.Windows(p.String()) {
		opens := w.Ends(time.Now())
		cost, tokens := p.String()+".model_cost."+w.Name, p.String()+".model_tokens."+w.Name
		if limit := w.Limit.Cost; limit > 0 {
			text := func(n int64) string { return api.Cost(n).String() }
			list = append(list, bound{p, cost, limit, w.Spent.Cost, w.Reserved.Cost, opens, text})
		}
		if limit := w.Limit.Tokens; limit > 0 {
			text := func(n int64) string { return strconv.FormatInt(n, 10) }
			list = append(list, bound{p, tokens, limit, w.Spent.Tokens, w.Reserved.Tokens, opens, text})
		}
	}
	return list
}

// shown is how a bound is told.
func (b bound) shown() api.Quota {
	number := func(n int64) json.Number { return json.Number(b.text(n)) }
	used := b.spent + b.reserved
	return api.Quota{
		Team: b.of.team, Token: b.of.token, Rule: b.rule, Opens: &b.opens,
		Limit: number(b.limit), Used: number(used), Left: number(max(0, b.limit-used)),
	}
}

// all tells of the quotas of those of whom mine is true.
func (s *payers) all(ctx context.Context, mine func(team, token string) bool) (list []api.Quota, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var of []payer
	for _, team := range slices.Sorted(maps.Keys(s.quotas.Teams)) {
		of = append(of, payer{team: team})
	}
	for _, token := range slices.Sorted(maps.Keys(s.quotas.Tokens)) {
		of = append(of, payer{token: token})
	}
	for _, p := range of {
		if !mine(p.team, p.token) {
			continue
		}
		if err := s.openOne(ctx, p); err != nil {
			return nil, err
		}
		for _, b := range s.quotasOf(p) {
			list = append(list, b.shown())
		}
	}
	return list, nil
}
