package pool

import (
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// Stats returns the pool's current figures.
func (p *Pool) Stats() api.PoolStats {
	now := time.Now()
	_, backlog := p.busy()
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := api.PoolStats{Size: p.opts.Size, MemoryBytes: p.opts.MemoryBytes, Units: []api.PoolUnit{}}
	stats.Waiting, stats.UsedBytes = p.count()
	for name, units := range p.units {
		stats.Waiting -= units.coming
		stats.Units = append(stats.Units, units.stats(name, units.wanted(now, p.opts.Idle, backlog[name])))
	}
	slices.SortFunc(stats.Units, func(a, b api.PoolUnit) int { return strings.Compare(a.Unit, b.Unit) })
	return stats
}

func (s *unitPool) stats(unit string, wanted int) api.PoolUnit {
	stats := api.PoolUnit{
		Unit: unit, Wanted: wanted, Fixed: s.fixed, Starting: s.coming,
		Hits: s.hits, Misses: s.misses, Refills: s.refills, Failures: s.failures, Discarded: s.discarded,
		Waiting: []api.PoolSandbox{},
	}
	for _, p := range s.waiting {
		stats.Waiting = append(stats.Waiting,
			api.PoolSandbox{ID: p.ID, Container: p.Runtime.ID(), Loaded: p.Loaded, Since: p.Since.UTC()})
	}
	return stats
}
