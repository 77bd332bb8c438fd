package main

import (
	"context"
	"fmt"
	"time"
)

// refill takes all that wait at once, and times how long it takes until as many wait again.
func (b *bench) refill(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	if _, _, err := b.countDir(ctx); err != nil {
		return part{}, err
	}
	capsules, err := b.stock(ctx, stocked, smallRun, smallUnit)
	if err != nil {
		return part{}, err
	}
	units, err := b.stock(ctx, stocked, "", countUnit)
	if err != nil {
		return part{}, err
	}
	ask := &asker{server: capsules.server}
	kinds := []*refilling{
		{name: "a Python capsule, loaded", stock: capsules, take: ask.do},
		{name: "an Agentic Unit, its init only", stock: units, take: units.countNothing},
	}
	for range max(b.pairs/6, 1) {
		for _, r := range kinds {
			if err := r.once(ctx); err != nil {
				return part{}, err
			}
		}
	}
	made := part{table: table{head: []string{"of", "sandboxes a second", "ms for one, p50", "p95"}}}
	for _, r := range kinds {
		made.table.rows = append(made.table.rows, r.row())
	}
	made.notes = []string{fmt.Sprintf("From the last of %d calls at once, which took all that waited, until as many "+
		"wait again; %d times.", stocked, len(kinds[0].times))}
	return made, nil
}

// refilling is what one kind's refill took, divided by how many there were.
type refilling struct {
	series
	name  string
	stock *stock
	take  func(context.Context, int) error
}

func (r *refilling) once(ctx context.Context) error {
	if _, _, failures := crowd(ctx, stocked, stocked, r.take); len(failures) > 0 {
		return failures[0]
	}
	began := time.Now()
	if err := r.stock.full(ctx); err != nil {
		return err
	}
	r.times = append(r.times, time.Since(began)/stocked)
	return nil
}

func (r *refilling) row() []string {
	return []string{r.name, digits(1 / r.p50().Seconds()), milliseconds(r.p50()), milliseconds(r.quantile(0.95))}
}

// countNothing is a run of the Agentic Unit with an empty stdin.
func (k *stock) countNothing(ctx context.Context, _ int) error {
	return k.piped("", "", nil).do(ctx)
}
