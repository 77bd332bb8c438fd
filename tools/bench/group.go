package main

import (
	"context"
	"fmt"
	"time"
)

// group is the same work done in several ways.
type group struct {
	ways   []*way
	beside []string // the ways that all medians are held against
	aims   []aim
	times  int             // as many turns for each pair that is asked for; 0 is 1
	each   int             // or one turn for as many pairs; 0 is 1
	notes  []func() string // of what was seen meanwhile
}

// way is one of them.
type way struct {
	name   string
	do     func(context.Context) error
	settle func(context.Context) error // not timed: waits until nothing of do goes on; may be nil
	inside *inside                     // may be nil
	io     string                      // the directory that its container has as /io, or works in; may be ""
}

// inside is a part of a way's time, as its program told it.
type inside struct {
	name string
	took func() time.Duration
}

// aim is a target of one series: a median in milliseconds, how much more than another's it is,
// or its ratio to that.
type aim struct {
	of     string
	ms     float64 // 0: it is one of the others
	more   float64 // milliseconds; 0: it is a ratio
	ratio  float64
	beside string
}

// measure times all ways in turn; with each turn another one is the first.
func (g group) measure(ctx context.Context, pairs int) (part, error) {
	turns := max(pairs*max(g.times, 1)/max(g.each, 1), 1)
	own, insides := make([]series, len(g.ways)), make([]series, len(g.ways))
	for turn := range turns + 1 { // the first one warms caches
		for i := range g.ways {
			at := (turn + i) % len(g.ways)
			w := g.ways[at]
			took, err := w.time(ctx)
			if err != nil {
				return part{}, fmt.Errorf("%s: %w", w.name, err)
			}
			if turn == 0 {
				continue
			}
			own[at].times = append(own[at].times, took)
			if w.inside != nil {
				insides[at].times = append(insides[at].times, w.inside.took())
			}
		}
	}
	var all []series
	for i, w := range g.ways {
		own[i].name = w.name
		all = append(all, own[i])
		if w.inside != nil {
			insides[i].name = w.inside.name
			all = append(all, insides[i])
		}
	}
	return g.part(all, turns), nil
}

func (w way) time(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	err := w.do(ctx)
	took := time.Since(began)
	if err == nil && w.settle != nil {
		err = w.settle(ctx)
	}
	return took, err
}

// part shows the series.
func (g group) part(all []series, turns int) part {
	made := part{table: table{head: []string{"milliseconds", "p50", "p95", "p99"}}}
	for _, name := range g.beside {
		made.table.head = append(made.table.head, "p50, of "+name)
	}
	for _, s := range all {
		row := []string{s.name}
		for _, q := range []float64{0.5, 0.95, 0.99} {
			row = append(row, milliseconds(s.quantile(q)))
		}
		for _, name := range g.beside {
			row = append(row, fmt.Sprintf("%.3f", ratio(s.p50(), named(all, name).p50())))
		}
		made.table.rows = append(made.table.rows, row)
	}
	for _, a := range g.aims {
		made.goals = append(made.goals, a.goal(all))
	}
	made.notes = append(made.notes, fmt.Sprintf("%d turns.", turns))
	for _, note := range g.notes {
		made.notes = append(made.notes, note())
	}
	return made
}

func named(all []series, name string) series {
	for _, s := range all {
		if s.name == name {
			return s
		}
	}
	return series{}
}

func (a aim) goal(all []series) goal {
	of := named(all, a.of).p50()
	if a.ms > 0 {
		return atMost(a.of+", p50 in ms", of.Seconds()*1000, a.ms)
	}
	if a.more > 0 {
		return atMost(fmt.Sprintf("%s, p50 in ms more than %s", a.of, a.beside), (of-named(all, a.beside).p50()).
			Seconds()*1000, a.more)
	}
	return atMost(fmt.Sprintf("%s, p50, of %s", a.of, a.beside), ratio(of, named(all, a.beside).p50()),
		a.ratio)
}
