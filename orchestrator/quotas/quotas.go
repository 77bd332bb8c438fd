// Package quotas keeps what teams and tokens may have: it bounds their slots, queues, sessions and room on disk, and
// tells what is left of all that bounds them.
//
// It must not know what a feature bounds, how a run is led, or HTTP.
//
// Its Go API may change with every release: see docs/stability.md.
package quotas

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/queue"
)

// Bounds are the most that a team or a token may have; 0 is no bound.
type Bounds struct {
	Slots    int   // that its runs hold at once
	Queued   int   // runs that wait for their first slot
	Sessions int   // that aren't closed
	MCP      int   // sessions of MCP, of all its clients
	Storage  int64 // bytes that its runs take
	// Age is how old a team's runs get that ended; 0: as old as those of all.
	Age time.Duration
}

// Given are the bounds of the teams and tokens that have any, by their names.
type Given struct{ Teams, Tokens map[string]Bounds }

// account is what has bounds: a team or a token.
type account struct{ team, token string }

// accounts are those of ctx's client.
func accounts(ctx context.Context) []account {
	owner := access.OwnerOf(ctx)
	if owner.By == "" {
		return []account{{team: owner.Team}}
	}
	return []account{{team: owner.Team}, {token: owner.By}}
}

// String names an account in a sentence.
func (a account) String() string {
	if a.token != "" {
		return "token " + a.token
	}
	return "team " + a.team
}

// rule is the setting that bounds something of an account.
func (a account) rule(name string) string {
	if a.token != "" {
		return "tokens." + a.token + "." + name
	}
	return "teams." + a.team + "." + name
}

func (g *Given) of(a account) Bounds {
	if a.token != "" {
		return g.Tokens[a.token]
	}
	return g.Teams[a.team]
}

// Queue has the runs that wait and those that hold a slot.
type Queue interface {
	SetBounds(teams, tokens map[string]queue.Bounds)
	OfTeam(name string) (running, waiting int)
	OfToken(name string) (running, waiting int)
}

// Sessions has those that aren't closed.
type Sessions interface {
	SetBounds(teams, tokens map[string]int)
	OfTeam(name string) int
	OfToken(name string) int
}

// Runs tells how many bytes those of teams and of a token take.
type Runs interface {
	BytesOf(ctx context.Context, teams ...string) (int64, error)
	BytesBy(ctx context.Context, token string) (int64, error)
}

// Options are what Quotas need.
type Options struct {
	Queue    Queue
	Sessions Sessions
	Runs     Runs
	Features []feature.Feature
}

// Quotas are those of a server. They are safe for concurrent use.
type Quotas struct {
	opts  Options
	given atomic.Pointer[Given]

	mu  sync.Mutex
	mcp map[account]int // sessions of MCP that are open
}

// New returns Quotas that bound nobody.
func New(opts Options) *Quotas {
	q := &Quotas{opts: opts, mcp: map[account]int{}}
	q.given.Store(&Given{})
	return q
}

// Set bounds teams and tokens from now on. Who has more keeps it.
func (q *Quotas) Set(given Given) {
	q.opts.Queue.SetBounds(slotsOf(given.Teams), slotsOf(given.Tokens))
	q.opts.Sessions.SetBounds(sessionsOf(given.Teams), sessionsOf(given.Tokens))
	q.given.Store(&given)
}

func slotsOf(all map[string]Bounds) map[string]queue.Bounds {
	slots := map[string]queue.Bounds{}
	for name, b := range all {
		slots[name] = queue.Bounds{Slots: b.Slots, Queued: b.Queued}
	}
	return slots
}

func sessionsOf(all map[string]Bounds) map[string]int {
	sessions := map[string]int{}
	for name, b := range all {
		sessions[name] = b.Sessions
	}
	return sessions
}

// AdmitMCP counts a session of MCP for the team and the token of ctx's client, until leave is called. The error is a
// Busy fault where one of them has as many as it may.
func (q *Quotas) AdmitMCP(ctx context.Context) (leave func(), err error) {
	of, given := accounts(ctx), q.given.Load()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range of {
		if most := given.of(a).MCP; most > 0 && q.mcp[a] >= most {
			return nil, fault.New(fault.Busy, "the %s has %d sessions of MCP, which is the most (%s)", a, q.mcp[a],
				a.rule("mcp_sessions")).
				WithHint("end some with DELETE, or ask without a session (protocol revision 2026-07-28)")
		}
	}
	for _, a := range of {
		q.mcp[a]++
	}
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, a := range of {
			if q.mcp[a]--; q.mcp[a] == 0 {
				delete(q.mcp, a)
			}
		}
	}), nil
}

// mcpOf counts the sessions of MCP that an account has open.
func (q *Quotas) mcpOf(a account) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mcp[a]
}

// Ages are those of the runs of teams that have one of their own.
func (q *Quotas) Ages() map[string]time.Duration {
	ages := map[string]time.Duration{}
	for name, b := range q.given.Load().Teams {
		if b.Age > 0 {
			ages[name] = b.Age
		}
	}
	return ages
}

// CheckStorage returns a Busy fault where the runs of the team or the token of ctx's client take as much as they may.
func (q *Quotas) CheckStorage(ctx context.Context) error {
	given := q.given.Load()
	for _, a := range accounts(ctx) {
		most := given.of(a).Storage
		if most == 0 {
			continue
		}
		has, err := q.bytesOf(ctx, a)
		if err != nil {
			return err
		}
		if has >= most {
			return fault.New(fault.Busy, "the runs of the %s take %s, and may take %s (%s)", a, quantity.SizeText(has),
				quantity.SizeText(most), a.rule("storage")).
				WithHint("remove some that nobody needs: `aod prune` with a token of the team that has the scope admin")
		}
	}
	return nil
}

func (q *Quotas) bytesOf(ctx context.Context, a account) (int64, error) {
	if a.token != "" {
		return q.opts.Runs.BytesBy(ctx, a.token)
	}
	return q.opts.Runs.BytesOf(ctx, a.team)
}

// List tells of each bound that holds for the client of ctx how much of it is taken: of its teams and of its token, and
// to who sees everything of all.
func (q *Quotas) List(ctx context.Context) (list []api.Quota, err error) {
	list = []api.Quota{}
	teams, all := access.UnitsOf(ctx)
	mine := func(team, token string) bool {
		return all || slices.Contains(teams, team) || token != "" && token == access.OwnerOf(ctx).By
	}
	for _, a := range q.given.Load().accounts() {
		if !mine(a.team, a.token) {
			continue
		}
		own, err := q.of(ctx, a)
		if err != nil {
			return list, err
		}
		list = append(list, own...)
	}
	for _, f := range q.opts.Features {
		if bounds, ok := f.(feature.Bounder); ok {
			own, err := bounds.Quotas(ctx, mine)
			if err != nil {
				return list, err
			}
			list = append(list, own...)
		}
	}
	slices.SortStableFunc(list, func(a, b api.Quota) int {
		return cmp.Or(cmp.Compare(a.Team, b.Team), cmp.Compare(a.Token, b.Token))
	})
	return list, nil
}

// accounts are those that have bounds, in the order of their names.
func (g *Given) accounts() (all []account) {
	for _, name := range slices.Sorted(maps.Keys(g.Teams)) {
		all = append(all, account{team: name})
	}
	for _, name := range slices.Sorted(maps.Keys(g.Tokens)) {
		all = append(all, account{token: name})
	}
	return all
}

// counts are the runs of an account that hold a slot and that wait, and its sessions.
func (q *Quotas) counts(a account) (running, waiting, sessions int) {
	if a.token != "" {
		running, waiting = q.opts.Queue.OfToken(a.token)
		return running, waiting, q.opts.Sessions.OfToken(a.token)
	}
	running, waiting = q.opts.Queue.OfTeam(a.team)
	return running, waiting, q.opts.Sessions.OfTeam(a.team)
}

// of are the bounds of an account that there are.
func (q *Quotas) of(ctx context.Context, a account) (list []api.Quota, err error) {
	b := q.given.Load().of(a)
	running, waiting, sessions := q.counts(a)
	bytes := int64(0)
	if b.Storage > 0 {
		bytes, err = q.bytesOf(ctx, a)
	}
	for _, one := range []struct {
		name        string
		limit, used int64
	}{
		{"slots", int64(b.Slots), int64(running)},
		{"queued", int64(b.Queued), int64(waiting)},
		{"sessions", int64(b.Sessions), int64(sessions)},
		{"mcp_sessions", int64(b.MCP), int64(q.mcpOf(a))},
		{"storage", b.Storage, bytes},
	} {
		if one.limit > 0 {
			list = append(list, api.Quota{
				Team: a.team, Token: a.token, Rule: a.rule(one.name), Limit: number(one.limit), Used: number(one.used),
				Left: number(max(0, one.limit-one.used)),
			})
		}
	}
	return list, err
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
