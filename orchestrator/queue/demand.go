package queue

import (
	"cmp"
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

// Demand returns what is lacking. Runs that wait for anything else than a machine aren't in it.
func (q *Queue) Demand() (all []Demand) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, u := range q.units {
		room := u.most(u.running+u.waiting, 0) - u.running
		for _, l := range u.lines {
			if len(l.waiting) > 0 && !u.slotless && q.lacksMachine(l) {
				all = q.demand(all, l, min(len(l.waiting), room))
				room -= min(len(l.waiting), room)
			}
		}
	}
	slices.SortFunc(all, func(a, b Demand) int {
		return cmp.Compare(strings.Join(a.Needs, ","), strings.Join(b.Needs, ","))
	})
	return all
}

// lacksMachine reports whether the first run of a line would begin if there were another machine.
func (q *Queue) lacksMachine(l *line) bool {
	return slices.Contains([]Reason{ForSlot, ForMemory, ForMachine, ForTurn}, q.reasonOf(l))
}

// demand adds the first runs of a line.
func (q *Queue) demand(all []Demand, l *line, n int) []Demand {
	for _, p := range l.waiting[:max(n, 0)] {
		needs := slices.Sorted(slices.Values(p.needs))
		at := slices.IndexFunc(all, func(d Demand) bool { return slices.Equal(d.Needs, needs) })
		if at < 0 {
			at = len(all)
			all = append(all, Demand{Needs: needs, Since: p.since})
			for _, m := range q.machines {
				if m.takes(needs) {
					all[at].Slots, all[at].Running = all[at].Slots+m.Slots, all[at].Running+m.running
				}
			}
		}
		all[at].Waiting++
		if p.since.Before(all[at].Since) {
			all[at].Since = p.since
		}
	}
	return all
}
