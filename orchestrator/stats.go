package orchestrator

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/orchestrator/metrics"
	"github.com/agent-on-demand/aod/runtime"
)

// Metrics returns the service's metrics, its current figures included.
func (s *Service) Metrics() prometheus.Gatherer { return s.registry }

// Memory returns the gate of what all requests hold in memory, those of runs included.
func (s *Service) Memory() *bytegate.Gate { return s.opts.Handoffs.Memory }

// collectors are the metrics of the kinds.
func (s *Service) collectors() (all []prometheus.Collector) {
	for kind := range s.kinds.Each() {
		if own, ok := kind.(interface{ Collectors() []prometheus.Collector }); ok {
			all = append(all, own.Collectors()...)
		}
	}
	return all
}

// figures are the current figures for the metrics.
func (s *Service) figures(ctx context.Context) (metrics.Figures, error) {
	stats, err := s.Stats(ctx)
	if err != nil {
		return metrics.Figures{}, err
	}
	backlog, err := s.PushBacklog(ctx)
	if err != nil {
		backlog = -1
	}
	return metrics.Figures{
		Version: s.opts.Version, Stats: stats, Pool: s.Pool(), Egress: s.opts.Egress.Totals(),
		Backlog: backlog,
	}, nil
}

// Stats returns the figures of the moment.
func (s *Service) Stats(ctx context.Context) (api.Stats, error) {
	totals, err := s.store.Totals(ctx)
	if err != nil {
		return api.Stats{}, err
	}
	stats := api.Stats{Since: s.recent.Since, Slots: s.opts.Concurrency}
	stats.Disk.StoredRuns, stats.Disk.StoredBytes = totals.Runs, totals.DiskBytes
	stats.Disk.FreeBytes, _ = runtime.FreeBytes(s.opts.Home) // unknown is 0
	pool := s.Pool()
	stats.Pool = api.PoolSums{Size: pool.Size, Waiting: pool.Waiting}
	stats.Memory.LimitBytes, stats.Memory.RunBytes = s.queue.Memory()
	stats.Memory.PoolBytes = pool.UsedBytes
	stats.Units, err = s.unitStats(ctx, &stats)
	return stats, err
}

// unitStats returns the figures of each unit, and adds them up in all.
func (s *Service) unitStats(ctx context.Context, all *api.Stats) ([]api.UnitStats, error) {
	live, err := s.store.Live(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	busy, waiting := s.queue.Counts()
	all.Busy = busy
	byUnit := map[string]map[api.Status]int64{}
	for _, name := range s.recent.Names() {
		byUnit[name] = map[api.Status]int64{}
	}
	for _, l := range live {
		if byUnit[l.Unit] == nil {
			byUnit[l.Unit] = map[api.Status]int64{}
		}
		byUnit[l.Unit][api.State(l.State).Status()] = l.Runs
		if l.State == string(api.Idle) {
			all.OldestWait = max(all.OldestWait, float64(now.Sub(l.Oldest).Milliseconds()))
		}
	}
	units := []api.UnitStats{}
	for name, states := range byUnit {
		u := api.UnitStats{Unit: name, Live: states, Ended: map[api.Outcome]int64{}, Queued: waiting[name]}
		s.recent.Figures(&u, s.queue.Lanes(name), now)
		units = append(units, u)
		all.Queued += u.Queued
	}
	slices.SortFunc(units, func(a, b api.UnitStats) int { return strings.Compare(a.Unit, b.Unit) })
	return units, nil
}
