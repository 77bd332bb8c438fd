package queue

import (
	"slices"
	"strings"
	"time"
)

// Demand is what runs that wait lack of machines, by what they need of them.
type Demand struct {
	Needs   []string
	Waiting int       // runs that would begin on further machines, as far as their units' limits let them
	Since   time.Time // when the first of them came
	Slots   int       // of the machines that take such runs, free or not
	Running int       // runs that hold a slot of those
}

// demand is of all needs.
type demand []Demand

// of returns that of some needs, at machines.
func (d *demand) of(needs []string, all machines) *Demand {
	needs = slices.Sorted(slices.Values(needs))
	at := slices.IndexFunc(*d, func(one Demand) bool { return slices.Equal(one.Needs, needs) })
	if at < 0 {
		at = len(*d)
		*d = append(*d, Demand{Needs: needs, Slots: all.slots(needs), Running: all.runningOf(needs)})
	}
	return &(*d)[at]
}

// add adds a run that waits.
func (d *Demand) add(p *Permit) {
	if d.Waiting++; d.Since.IsZero() || p.since.Before(d.Since) {
		d.Since = p.since
	}
}

// sorted is the demand by its needs.
func (d demand) sorted() []Demand {
	slices.SortFunc(d, func(a, b Demand) int {
		return strings.Compare(strings.Join(a.Needs, ","), strings.Join(b.Needs, ","))
	})
	return d
}
