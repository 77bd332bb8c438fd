package orchestrator

import (
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// Pool returns the figures of the moment.
func (s *Service) Pool() api.PoolStats { return s.pool.stats(time.Now()) }

func (p *pool) stats(now time.Time) api.PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := api.PoolStats{Size: p.opts.Size, MemoryBytes: p.opts.MemoryBytes, Units: []api.PoolUnit{}}
	stats.Waiting, stats.UsedBytes = p.stock()
	for name, shelf := range p.shelves {
		stats.Waiting -= shelf.coming
		stats.Units = append(stats.Units, shelf.stats(name, shelf.wanted(now, p.opts.Idle)))
	}
	slices.SortFunc(stats.Units, func(a, b api.PoolUnit) int { return strings.Compare(a.Unit, b.Unit) })
	return stats
}

func (s *shelf) stats(unit string, wanted int) api.PoolUnit {
	stats := api.PoolUnit{
		Unit: unit, Wanted: wanted, Fixed: s.fixed, Starting: s.coming,
		Hits: s.hits, Misses: s.misses, Refills: s.refills, Failures: s.failures, Waiting: []api.PoolSandbox{},
	}
	for _, p := range s.waiting {
		stats.Waiting = append(stats.Waiting, api.PoolSandbox{ID: p.id, Container: p.sandbox.ID(), Loaded: p.deep, Since: p.since.UTC()})
	}
	return stats
}
