package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// batch is how many jobs are timed as one.
const batch = 16

// levels are how many jobs go on at a time.
var levels = []int{1, 2, 4, 8}

// lane is one way to do many jobs.
type lane struct {
	name string
	do   func(ctx context.Context, worker int) error
	rest func(context.Context) error // after each batch, not timed; may be nil
	jobs int
	took time.Duration
}

// jobsASecond does batches of the small job.
func (b *bench) jobsASecond(ctx context.Context) (part, error) {
	lanes, warm, err := b.lanes(ctx)
	if err != nil {
		return part{}, err
	}
	made := part{table: table{head: []string{"jobs a second, so many at a time"}}}
	for _, l := range lanes {
		made.table.rows = append(made.table.rows, []string{l.name})
	}
	for _, level := range levels {
		made.table.head = append(made.table.head, fmt.Sprint(level))
		if err := b.batches(ctx, lanes, level); err != nil {
			return part{}, err
		}
		for i, l := range lanes {
			made.table.rows[i] = append(made.table.rows[i], digits(float64(l.jobs)/l.took.Seconds()))
			l.jobs, l.took = 0, 0
		}
	}
	made.notes = []string{
		fmt.Sprintf("Batches of %d jobs, %d of each. The warm ones begin with %d containers that wait, and are "+
			"bounded by the refill from then on.", batch, b.batchesEach(), stocked),
		warm.String(),
	}
	return made, nil
}

func (b *bench) lanes(ctx context.Context) (lanes []*lane, warm *stock, err error) {
	j, err := b.small(ctx)
	if err != nil {
		return nil, nil, err
	}
	cold, err := b.serve(ctx, serving{})
	if err != nil {
		return nil, nil, err
	}
	if warm, err = b.stock(ctx, stocked, smallRun, smallUnit); err != nil {
		return nil, nil, err
	}
	lanes = []*lane{asking(apiWarm, warm.server, warm.after), asking(apiCold, cold, cold.after)}
	for _, n := range networks {
		do, err := b.manyDockers(j, n.network)
		if err != nil {
			return nil, nil, err
		}
		lanes = append(lanes, &lane{name: n.name, do: do})
	}
	return lanes, warm, nil
}

// asking is the lane of a server.
func asking(name string, s *server, after func(context.Context, ...string) error) *lane {
	a := &asker{server: s}
	return &lane{name: name, do: a.do, rest: func(ctx context.Context) error { return after(ctx, a.taken()...) }}
}

// batches has each lane do its jobs in turn with the others.
func (b *bench) batches(ctx context.Context, lanes []*lane, level int) error {
	order := slices.Clone(lanes)
	for range b.batchesEach() {
		for _, l := range order {
			each, took, failures := crowd(ctx, batch, level, l.do)
			if len(failures) > 0 {
				return fmt.Errorf("%s: %w", l.name, errors.Join(failures...))
			}
			l.jobs += len(each.times)
			l.took += took
			if l.rest == nil {
				continue
			}
			if err := l.rest(ctx); err != nil {
				return err
			}
		}
		order = append(order[1:], order[0])
	}
	return nil
}

func (b *bench) batchesEach() int { return max(b.pairs/15, 1) }

// asker asks a server for the small job and remembers the runs.
type asker struct {
	*server
	mu  sync.Mutex
	ids []string
}

func (a *asker) do(ctx context.Context, _ int) error {
	record, err := a.submit(ctx, smallRun, waiting, http.StatusOK)
	if err == nil && record.Outcome != api.Success {
		err = fmt.Errorf("run %s ended with the outcome %q", record.ID, record.Outcome)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if record.ID != "" {
		a.ids = append(a.ids, record.ID)
	}
	return err
}

// taken returns the runs since it was asked last.
func (a *asker) taken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := a.ids
	a.ids = nil
	return ids
}

// manyDockers gives each worker an /io of its own.
func (b *bench) manyDockers(j job, network string) (func(context.Context, int) error, error) {
	var runs []func(context.Context) error
	for worker := range slices.Max(levels) {
		own, err := j.elsewhere(filepath.Join(b.dir, fmt.Sprintf("%s-io-%s%d", j.name, network, worker)))
		if err != nil {
			return nil, err
		}
		runs = append(runs, own.dockerRun(network))
	}
	return func(ctx context.Context, worker int) error { return runs[worker](ctx) }, nil
}
