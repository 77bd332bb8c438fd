// Package figures counts what goes on in a server: for its metrics, for who asks how it fares, and for each unit.
//
// It must not know how a run is led, or HTTP.
//
// Its Go API may change with every release: see docs/stability.md.
package figures

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/metrics"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/turns"
	"github.com/agent-on-demand/aod/runtime"
)

// Options are what Figures are taken of.
type Options struct {
	Store    *store.Store
	Queue    *queue.Queue
	Recent   *metrics.Recent
	Sessions *turns.Registry
	Kinds    run.Kinds
	Features []feature.Feature
	Slots    int    // how many runs go on at once
	Home     string // on the disk whose room counts
	Teams    access.Teams
	Version  string // of the program
}

// Figures are those of a server. They are safe for concurrent use.
type Figures struct{ opts Options }

// New returns Figures.
func New(opts Options) *Figures { return &Figures{opts} }

// Collectors are the metrics of the kinds and of the features.
func (f *Figures) Collectors() (all []prometheus.Collector) {
	add := func(of any) {
		if own, ok := of.(interface{ Collectors() []prometheus.Collector }); ok {
			all = append(all, own.Collectors()...)
		}
	}
	for kind := range f.opts.Kinds.Each() {
		add(kind)
	}
	for _, feature := range f.opts.Features {
		add(feature)
	}
	return all
}

// Now returns the current figures for the metrics.
func (f *Figures) Now(ctx context.Context) (metrics.Figures, error) {
	ctx = access.WithServer(ctx)
	pool := f.Pool()
	stats, err := f.stats(ctx, pool)
	if err != nil {
		return metrics.Figures{}, err
	}
	now := metrics.Figures{
		Version: f.opts.Version, Stats: stats, Pool: pool, DatabaseBytes: f.Database(), BackedUp: f.backedUp(),
	}
	now.Teams, err = f.ofTeams(ctx)
	return now, err
}

// ofTeams are the figures of the teams that there are, and of those that have something open, by name.
func (f *Figures) ofTeams(ctx context.Context) ([]metrics.Team, error) {
	at := time.Now()
	asked, err := f.opts.Store.Questions.OpenByTeam(ctx, at)
	if err != nil {
		return nil, err
	}
	byName := map[string]metrics.Team{access.DefaultTeam: {}}
	if f.opts.Teams != nil {
		for _, name := range f.opts.Teams() {
			byName[name] = metrics.Team{}
		}
	}
	for name, open := range f.opts.Sessions.OpenByTeam() {
		byName[name] = metrics.Team{Sessions: open}
	}
	for _, q := range asked {
		team := byName[q.Team]
		team.Questions, team.Oldest = q.Count, max(0, at.Sub(q.Oldest))
		byName[q.Team] = team
	}
	teams := make([]metrics.Team, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		team := byName[name]
		team.Name = name
		teams = append(teams, team)
	}
	return teams[:min(len(teams), metrics.MaxTeams)], nil
}

// backedUp returns when the last backup of the home was made; the zero time: none was, or it isn't known.
func (f *Figures) backedUp() time.Time {
	raw, err := os.ReadFile(filepath.Join(f.opts.Home, layout.BackedUp))
	if err != nil {
		return time.Time{}
	}
	at, _ := time.Parse(time.RFC3339, strings.TrimSpace(string(raw))) // what isn't one is none
	return at
}

// Whole reports whether the client of ctx may know how the whole server fares: everybody who may look, as long as there
// are no teams, and then those alone who see what all have. A token that is limited to units isn't among them.
func (f *Figures) Whole(ctx context.Context) bool {
	if len(access.ReachOf(ctx).Units) > 0 {
		return access.Has(ctx, access.Metrics)
	}
	return access.ReachOf(ctx).All || access.Has(ctx, access.Metrics) ||
		!f.opts.Teams.Any() && access.May(ctx, access.Read)
}

// CheckWhole returns a Forbidden fault for a client who may not know how the whole server fares.
func (f *Figures) CheckWhole(ctx context.Context) error {
	if f.Whole(ctx) {
		return nil
	}
	return fault.New(fault.Forbidden, "this tells of all teams, and the token %q is one of a team",
		access.ClientOf(ctx)).
		WithHint("the operator makes a token for it: `aod token add NAME --scope metrics`")
}

// Stats returns the figures of the moment: for one who may not know how the whole server fares, those of the own
// runs.
func (f *Figures) Stats(ctx context.Context) (api.Stats, error) {
	if f.Whole(ctx) {
		return f.stats(ctx, f.Pool())
	}
	stats := api.Stats{Since: f.opts.Recent.Since, Slots: f.opts.Slots}
	var err error
	stats.Units, err = f.unitStats(ctx, &stats)
	return stats, err
}

func (f *Figures) stats(ctx context.Context, pool api.PoolStats) (api.Stats, error) {
	totals, err := f.opts.Store.Runs.Totals(ctx)
	if err != nil {
		return api.Stats{}, err
	}
	stats := api.Stats{Since: f.opts.Recent.Since, Slots: f.opts.Slots}
	stats.Disk.StoredRuns, stats.Disk.StoredBytes = totals.Runs, totals.DiskBytes
	stats.Disk.FreeBytes, _ = runtime.FreeBytes(f.opts.Home) // unknown is 0
	stats.Pool = api.PoolSums{Size: pool.Size, Waiting: pool.Waiting}
	stats.Memory.LimitBytes, stats.Memory.RunBytes = f.opts.Queue.Memory()
	stats.Memory.PoolBytes = pool.UsedBytes
	stats.Units, err = f.unitStats(ctx, &stats)
	return stats, err
}

// unitStats returns the figures of each unit, and adds them up in all.
func (f *Figures) unitStats(ctx context.Context, all *api.Stats) ([]api.UnitStats, error) {
	live, err := f.opts.Store.Runs.Live(ctx, store.OwnedFor(ctx))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	busy, waiting := f.opts.Queue.Counts()
	whole, team := f.Whole(ctx), ""
	if whole {
		all.Busy = busy
	} else {
		waiting, team = map[string]int{}, access.OwnerOf(ctx).Team
	}
	for _, l := range live {
		idle := l.State == string(api.Idle)
		if idle {
			all.OldestWait = max(all.OldestWait, float64(now.Sub(l.Oldest).Milliseconds()))
		}
		if !whole {
			countOwn(l, idle, waiting, &all.Busy)
		}
	}
	byUnit, units := statesOf(live, f.opts.Recent.Names(team)), []api.UnitStats{}
	for name, states := range byUnit {
		if !whole && access.CheckUnit(ctx, name) != nil {
			continue
		}
		u := api.UnitStats{Unit: name, Live: states, Ended: map[api.Outcome]int64{}, Queued: waiting[name]}
		_, lanes := f.opts.Queue.Ahead(name)
		f.opts.Recent.Figures(&u, team, lanes, now)
		units = append(units, u)
		all.Queued += u.Queued
	}
	slices.SortFunc(units, func(a, b api.UnitStats) int { return strings.Compare(a.Unit, b.Unit) })
	return units, nil
}

// statesOf are the live runs of units by their states, also of units that have none any more.
func statesOf(live []store.Live, names []string) map[string]map[api.Status]int64 {
	byUnit := map[string]map[api.Status]int64{}
	for _, name := range names {
		byUnit[name] = map[api.Status]int64{}
	}
	for _, l := range live {
		if byUnit[l.Unit] == nil {
			byUnit[l.Unit] = map[api.Status]int64{}
		}
		byUnit[l.Unit][api.State(l.State).Status()] = l.Runs
	}
	return byUnit
}

// countOwn counts runs of a client's own as the queue counts those of all.
func countOwn(l store.Live, idle bool, waiting map[string]int, busy *int) {
	if idle {
		waiting[l.Unit] = int(l.Runs)
	} else {
		*busy += int(l.Runs)
	}
}

// Database returns how many bytes the store takes on its disk; 0 where that isn't known.
func (f *Figures) Database() (bytes int64) {
	for _, name := range []string{layout.Database, layout.Database + "-wal"} {
		if info, err := os.Stat(filepath.Join(f.opts.Home, name)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// PoolOf returns the figures of the sandboxes that wait for runs of the units that the client of ctx may know of: how
// many hits they had is told to those alone who may know how the whole server fares.
func (f *Figures) PoolOf(ctx context.Context) api.PoolStats {
	pool := f.Pool()
	if f.Whole(ctx) {
		return pool
	}
	of := pool.Units
	teams, _ := access.UnitsOf(ctx)
	pool = api.PoolStats{Units: []api.PoolUnit{}}
	for _, u := range of {
		prefix, _, dotted := strings.Cut(u.Unit, ".")
		if dotted && slices.Contains(teams, prefix) && access.CheckUnit(ctx, u.Unit) == nil {
			pool.Units = append(pool.Units, u)
			pool.Waiting += len(u.Waiting)
		}
	}
	return pool
}

// Pool returns the figures of the sandboxes that wait for runs.
func (f *Figures) Pool() api.PoolStats {
	for kind := range f.opts.Kinds.Each() {
		if warmer, ok := kind.(run.Warmer); ok {
			return warmer.Warmed()
		}
	}
	return api.PoolStats{Units: []api.PoolUnit{}}
}

// OfUnit tells what goes on with a unit. It counts up to 1000 runs.
func (f *Figures) OfUnit(ctx context.Context, name string) (*api.UnitStatus, error) {
	status := &api.UnitStatus{Sessions: f.opts.Sessions.OpenOf(ctx, name)}
	for _, joins := range f.opts.Features {
		if reporter, ok := joins.(feature.Reporter); ok {
			reporter.Report(ctx, name, status)
		}
	}
	owned := store.OwnedFor(ctx)
	live := store.Filter{Unit: name, Unfinished: true, Owned: owned}
	err := records.Each(ctx, f.opts.Store.Runs, live, 1000, func(row store.Run) {
		if row.State == string(api.Idle) {
			status.Waiting++
		} else {
			status.Running++
		}
	})
	if err != nil {
		return nil, err
	}
	if status.Schedules, err = f.opts.Store.Schedules.OfUnit(ctx, name, owned, 100); err != nil {
		return nil, err
	}
	if status.Lately, err = f.lately(ctx, name); err != nil {
		return nil, err
	}
	last, err := f.opts.Store.Runs.List(ctx, store.Filter{Unit: name, Limit: 1, Owned: owned})
	if err != nil || len(last.Runs) == 0 {
		return status, err
	}
	summary, err := records.Summary(last.Runs[0])
	status.LastRun = &api.LastRun{
		ID: summary.ID, State: summary.State, Outcome: summary.Outcome,
		CreatedAt: summary.CreatedAt,
	}
	return status, err
}

// Usage tells what was used, as far as the client of ctx may know.
func (f *Figures) Usage(ctx context.Context, filter api.UsageFilter) ([]api.UsageSum, error) {
	rows, err := f.opts.Store.Usages.Sums(ctx, store.UsageFilter{
		By: filter.By, Since: filter.Since, Until: filter.Until, Owned: store.OwnedFor(ctx),
	})
	used := make([]api.UsageSum, 0, len(rows))
	for _, row := range rows {
		u := api.UsageSum{
			Team: row.Team, Unit: row.Unit, Outcome: api.Outcome(row.Outcome), Model: row.Model,
			Runs: row.Runs, WaitMS: row.Waited.Milliseconds(), RunMS: row.Worked.Milliseconds(),
			CPUMS: row.CPU.Milliseconds(),
			Calls: row.Calls, Tokens: row.Tokens, Cost: api.Cost(row.Cost), Identity: api.IdentityOf(row.MadeBy),
		}
		if !row.Day.IsZero() {
			u.Day = row.Day.Format(api.UsageDay)
		}
		used = append(used, u)
	}
	return used, err
}

// Facet counts the newest runs that a filter chooses, by state, outcome, error_kind, unit or kind.
func (f *Figures) Facet(ctx context.Context, filter api.Filter, by string) (api.Facet, error) {
	found, err := f.opts.Store.Runs.Facet(ctx, records.FilterOf(ctx, filter), by)
	facet := api.Facet{By: by, Runs: found.Runs, More: found.More, Counts: make([]api.FacetCount, 0, len(found.Counts))}
	for _, c := range found.Counts {
		facet.Counts = append(facet.Counts, api.FacetCount(c))
	}
	return facet, err
}

// lastRuns is how many runs of a unit are looked at to tell how they ended.
const lastRuns = 100

// lately tells how the last runs of a unit ended; nil: none has.
func (f *Figures) lately(ctx context.Context, name string) (*api.Lately, error) {
	rows, err := f.opts.Store.Runs.LastEnded(ctx, name, store.OwnedFor(ctx), lastRuns)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	lately := &api.Lately{Runs: len(rows)}
	var took []float64
	var spent api.ModelTotal
	for _, row := range rows {
		if row.Outcome == string(api.Success) {
			lately.Succeeded++
		}
		if !row.StartedAt.IsZero() && row.Finished {
			took = append(took, run.Milliseconds(max(0, row.FinishedAt.Sub(row.StartedAt))))
		}
		spent.Charged, spent.Cost = spent.Charged+row.Tokens, spent.Cost+api.Cost(row.Cost)
	}
	if spent != (api.ModelTotal{}) {
		lately.Models = &spent
	}
	lately.P50, lately.P95 = metrics.Quantiles(took)
	return lately, nil
}
