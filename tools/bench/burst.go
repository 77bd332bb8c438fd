package main

import (
	"context"
	"fmt"
	"os"
)

const (
	burstCalls = 50
	stocked    = 8 // containers that wait, where many calls come
)

// bursts are as many calls at once, to a server with a pool and to one without.
func (b *bench) bursts(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	cold, err := b.serve(ctx, serving{})
	if err != nil {
		return part{}, err
	}
	warm, err := b.stock(ctx, stocked, smallRun, smallUnit)
	if err != nil {
		return part{}, err
	}
	with := &volley{name: fmt.Sprintf("%d wait", stocked), ask: &asker{server: warm.server}, after: warm.after}
	without := &volley{name: "none wait", ask: &asker{server: cold}, after: cold.after}
	for range max(b.pairs/10, 1) {
		if err := inTurn(with.fire, without.fire)(ctx); err != nil {
			return part{}, err
		}
	}
	made := part{
		table: table{
			head: []string{"milliseconds", "p50", "p95", "slowest", "failed", "of"},
			rows: [][]string{with.row(), without.row()},
		},
		goals: []goal{atMost("the slowest call, as a part of the slowest one where none wait",
			ratio(with.slowest(), without.slowest()), 1.1)},
		notes: []string{warm.String()},
	}
	return made, nil
}

// volley is one server's burst, once and again.
type volley struct {
	series
	name   string
	ask    *asker
	after  func(context.Context, ...string) error
	failed int
}

func (v *volley) fire(ctx context.Context) error {
	each, _, failures := crowd(ctx, burstCalls, burstCalls, v.ask.do)
	for _, err := range failures {
		fmt.Fprintln(os.Stderr, "bench: burst:", err)
	}
	v.times, v.failed = append(v.times, each.times...), v.failed+len(failures)
	ids := v.ask.taken()
	if len(failures) > 0 { // they are told of; rest would take them for an error of ours
		ids = nil
	}
	return v.after(ctx, ids...)
}

func (v *volley) row() []string {
	row := []string{v.name, milliseconds(v.p50()), milliseconds(v.quantile(0.95)), milliseconds(v.slowest())}
	return append(row, fmt.Sprint(v.failed), fmt.Sprint(v.failed+len(v.times)))
}
