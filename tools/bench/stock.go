package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api"
)

// stock is a server whose units' containers wait for their runs. It holds that each of its
// runs has a container of its own, and counts those that had waited.
type stock struct {
	*server
	units  []string
	loaded bool // the program waits, not only the init

	mu           sync.Mutex
	seen         map[string]bool // containers, by id
	hits, misses int
}

// stock starts a server where n containers wait for each unit. With a first run it waits
// until their programs are loaded; "" is none.
func (b *bench) stock(ctx context.Context, n int, firstRun string, units ...string) (*stock, error) {
	return b.stockOf(ctx, serving{}, n, firstRun, units...)
}

// stockOf is stock, with a server that differs in something else.
func (b *bench) stockOf(ctx context.Context, with serving, n int, firstRun string, units ...string) (*stock, error) {
	with.pool, with.warm = max(8, n*len(units)), map[string]int{}
	for _, name := range units {
		with.warm[name] = n
	}
	s, err := b.serve(ctx, with)
	if err != nil {
		return nil, err
	}
	k := &stock{server: s, units: units, seen: map[string]bool{}}
	if err := k.full(ctx); err != nil || firstRun == "" {
		return k, err
	}
	return k, k.teach(ctx, firstRun)
}

// teach shows the pool that its programs ask for their runs.
func (k *stock) teach(ctx context.Context, run string) error {
	record, err := k.submit(ctx, run, waiting, http.StatusOK)
	if err != nil {
		return err
	}
	k.loaded = true
	return k.after(ctx, record.ID)
}

// full returns when as many containers wait as shall.
func (k *stock) full(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime,
		fmt.Errorf("the pool of %q isn't full after %s", k.units, startTime))
	defer cancel()
	return poll(ctx, func() (bool, error) {
		shelves, err := k.shelves(ctx)
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(k.units, func(unit string) bool { return !k.isFull(shelves[unit]) }), nil
	})
}

func (k *stock) shelves(ctx context.Context) (map[string]api.PoolUnit, error) {
	answer, err := k.ask(ctx, http.MethodGet, "/v1/pool", "", http.StatusOK)
	if err != nil {
		return nil, err
	}
	var stats api.PoolStats
	err = json.Unmarshal(answer, &stats)
	shelves := map[string]api.PoolUnit{}
	for _, shelf := range stats.Units {
		shelves[shelf.Unit] = shelf
	}
	return shelves, err
}

func (k *stock) isFull(shelf api.PoolUnit) bool {
	shallow := func(p api.PoolSandbox) bool { return k.loaded && !p.Loaded }
	return shelf.Fixed > 0 && shelf.Starting == 0 && len(shelf.Waiting) >= shelf.Wanted &&
		!slices.ContainsFunc(shelf.Waiting, shallow)
}

// submission is the way of a run that finds a container waiting: the next thing is timed
// when the pool is full again.
func (k *stock) submission(name, body string) *way {
	return submission(name, k.after, func(ctx context.Context) (api.Record, error) {
		return k.submit(ctx, body, waiting, http.StatusOK)
	})
}

// after counts runs when they rest, and waits for a full pool.
func (k *stock) after(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		record, err := k.rest(ctx, id)
		if err != nil {
			return err
		}
		if err := k.count(record); err != nil {
			return err
		}
	}
	return k.full(ctx)
}

func (k *stock) count(record api.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := record.Container
	if c == nil || k.seen[c.ID] {
		return fmt.Errorf("run %s had no container of its own", record.ID)
	}
	k.seen[c.ID] = true
	if c.WaitedMS > 0 {
		k.hits++
	} else {
		k.misses++
	}
	return nil
}

// String tells what the records prove.
func (k *stock) String() string {
	return fmt.Sprintf("Warm runs: %d, misses: %d.", k.hits+k.misses, k.misses)
}
