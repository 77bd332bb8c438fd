package orchestrator

import (
	"slices"
	"strings"
	"time"
)

// PoolStats tell of the sandboxes that wait for runs (schemas/pool.schema.json).
type PoolStats struct {
	Size        int         `json:"size"` // how many may wait, all together
	Waiting     int         `json:"waiting"`
	MemoryBytes int64       `json:"memory_bytes"` // that they may take, all together
	UsedBytes   int64       `json:"used_bytes"`   // that they take, as far as earlier runs tell
	Units       []PoolShelf `json:"units"`        // sorted by name
}

// PoolShelf tells of one unit that was called, or wants sandboxes to wait whoever calls it.
type PoolShelf struct {
	Unit     string        `json:"unit"`
	Wanted   int           `json:"wanted"` // how many should wait now
	Fixed    int           `json:"fixed"`  // how many of these it asks for
	Starting int           `json:"starting"`
	Hits     int64         `json:"hits"`     // runs that got one
	Misses   int64         `json:"misses"`   // runs that started a container of their own
	Refills  int64         `json:"refills"`  // sandboxes that were started
	Failures int64         `json:"failures"` // to start one
	Waiting  []PooledEntry `json:"waiting"`  // the oldest first
}

// PooledEntry is one sandbox that waits.
type PooledEntry struct {
	ID        string    `json:"id"`        // its label aod.run
	Container string    `json:"container"` // the engine's id
	Loaded    bool      `json:"loaded"`    // its program is loaded and asks for a run; else it isn't started
	Since     time.Time `json:"since"`
}

// Pool returns the figures of the moment.
func (s *Service) Pool() PoolStats { return s.pool.stats(time.Now()) }

func (p *pool) stats(now time.Time) PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := PoolStats{Size: p.opts.Size, MemoryBytes: p.opts.MemoryBytes, Units: []PoolShelf{}}
	stats.Waiting, stats.UsedBytes = p.stock()
	for name, shelf := range p.shelves {
		stats.Waiting -= shelf.coming
		stats.Units = append(stats.Units, shelf.stats(name, shelf.wanted(now, p.opts.Idle)))
	}
	slices.SortFunc(stats.Units, func(a, b PoolShelf) int { return strings.Compare(a.Unit, b.Unit) })
	return stats
}

func (s *shelf) stats(unit string, wanted int) PoolShelf {
	stats := PoolShelf{
		Unit: unit, Wanted: wanted, Fixed: s.fixed, Starting: s.coming,
		Hits: s.hits, Misses: s.misses, Refills: s.refills, Failures: s.failures, Waiting: []PooledEntry{},
	}
	for _, p := range s.waiting {
		stats.Waiting = append(stats.Waiting, PooledEntry{ID: p.id, Container: p.sandbox.ID(), Loaded: p.deep, Since: p.since.UTC()})
	}
	return stats
}
