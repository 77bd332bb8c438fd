// Package quotas keeps what teams may have: it bounds their slots, queues, sessions and room on disk, and tells what is
// left of all that bounds a team or a token.
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

// Bounds are the most that a team may have; 0 is no bound.
type Bounds struct {
	Slots    int   // that its runs hold at once
	Queued   int   // runs that wait for their first slot
	Sessions int   // that aren't closed
	MCP      int   // sessions of MCP, of all its clients
	Storage  int64 // bytes that its runs take
	// Age is how old its runs get that ended; 0: as old as those of all.
	Age time.Duration
}

// Queue has the runs that wait and those that hold a slot.
type Queue interface {
	SetBounds(bounds map[string]queue.Bounds)
	OfTeam(name string) (running, waiting int)
}

// Sessions has those that aren't closed.
type Sessions interface {
	SetBounds(teams map[string]int)
	OfTeam(name string) int
}

// Runs tells how many bytes those of teams take.
type Runs interface {
	BytesOf(ctx context.Context, teams ...string) (int64, error)
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
	teams atomic.Pointer[map[string]Bounds]

	mu  sync.Mutex
	mcp map[string]int // sessions of MCP that are open, by team
}

// New returns Quotas that bound nobody.
func New(opts Options) *Quotas {
	q := &Quotas{opts: opts, mcp: map[string]int{}}
	q.teams.Store(&map[string]Bounds{})
	return q
}

// Set bounds teams by their names, from now on. Who has more keeps it.
func (q *Quotas) Set(teams map[string]Bounds) {
	slots, sessions := map[string]queue.Bounds{}, map[string]int{}
	for name, b := range teams {
		slots[name], sessions[name] = queue.Bounds{Slots: b.Slots, Queued: b.Queued}, b.Sessions
	}
	q.opts.Queue.SetBounds(slots)
	q.opts.Sessions.SetBounds(sessions)
	q.teams.Store(&teams)
}

// AdmitMCP counts a session of MCP for the team of ctx's client, until leave is called. The error is a Busy fault where
// the team has as many as it may.
func (q *Quotas) AdmitMCP(ctx context.Context) (leave func(), err error) {
	team := access.OwnerOf(ctx).Team
	most := (*q.teams.Load())[team].MCP
	q.mu.Lock()
	defer q.mu.Unlock()
	if most > 0 && q.mcp[team] >= most {
		return nil, fault.New(fault.Busy,
			"the team %s has %d sessions of MCP, which is the most (teams.%s.mcp_sessions)", team, q.mcp[team], team).
			WithHint("end some with DELETE, or ask without a session (protocol revision 2026-07-28)")
	}
	q.mcp[team]++
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.mcp[team]--; q.mcp[team] == 0 {
			delete(q.mcp, team)
		}
	}), nil
}

// mcpOf counts the sessions of MCP that a team has open.
func (q *Quotas) mcpOf(team string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mcp[team]
}

// Ages are those of the runs of teams that have one of their own.
func (q *Quotas) Ages() map[string]time.Duration {
	ages := map[string]time.Duration{}
	for name, b := range *q.teams.Load() {
		if b.Age > 0 {
			ages[name] = b.Age
		}
	}
	return ages
}

// CheckStorage returns a Busy fault where the runs of the team of ctx's client take as much as they may.
func (q *Quotas) CheckStorage(ctx context.Context) error {
	team := access.OwnerOf(ctx).Team
	most := (*q.teams.Load())[team].Storage
	if most == 0 {
		return nil
	}
	has, err := q.opts.Runs.BytesOf(ctx, team)
	if err != nil || has < most {
		return err
	}
	return fault.New(fault.Busy, "the runs of the team %s take %s, and may take %s (teams.%s.storage)", team,
		quantity.SizeText(has), quantity.SizeText(most), team).
		WithHint("remove some that nobody needs: `aod prune` with a token of the team that has the scope admin")
}

// List tells of each bound that holds for the client of ctx how much of it is taken: of its teams and of its token, and
// to who sees everything of all.
func (q *Quotas) List(ctx context.Context) (list []api.Quota, err error) {
	list = []api.Quota{}
	teams, all := access.UnitsOf(ctx)
	for _, team := range slices.Sorted(maps.Keys(*q.teams.Load())) {
		if !all && !slices.Contains(teams, team) {
			continue
		}
		own, err := q.ofTeam(ctx, team)
		if err != nil {
			return list, err
		}
		list = append(list, own...)
	}
	mine := func(team, token string) bool {
		return all || slices.Contains(teams, team) || token != "" && token == access.OwnerOf(ctx).By
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

// ofTeam are the bounds of a team that there are.
func (q *Quotas) ofTeam(ctx context.Context, team string) (list []api.Quota, err error) {
	b := (*q.teams.Load())[team]
	running, waiting := q.opts.Queue.OfTeam(team)
	bytes := int64(0)
	if b.Storage > 0 {
		bytes, err = q.opts.Runs.BytesOf(ctx, team)
	}
	for _, one := range []struct {
		name        string
		limit, used int64
	}{
		{"slots", int64(b.Slots), int64(running)},
		{"queued", int64(b.Queued), int64(waiting)},
		{"sessions", int64(b.Sessions), int64(q.opts.Sessions.OfTeam(team))},
		{"mcp_sessions", int64(b.MCP), int64(q.mcpOf(team))},
		{"storage", b.Storage, bytes},
	} {
		if one.limit > 0 {
			list = append(list, api.Quota{
				Team: team, Rule: "teams." + team + "." + one.name, Limit: number(one.limit), Used: number(one.used),
				Left: number(max(0, one.limit-one.used)),
			})
		}
	}
	return list, err
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
