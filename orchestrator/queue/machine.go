package queue

import (
	"math"
	"slices"
)

// Machine is where runs have their slots: the server itself, or one that works for it.
type Machine struct {
	Slots  int
	Memory int64    // that all its runs may take together, in bytes; 0 is no bound
	Labels []string // what it has that not all have
	Closed bool     // no run begins there any more; those that gave up their slot for a while get one again
}

// Local is the name of the server's own machine, which is always there.
const Local = ""

// Never is the rank of a machine to which a run doesn't go now.
const Never = math.MinInt

// machine is a Machine with what its runs take. Its fields are read and set with the queue's lock held.
type machine struct {
	Machine
	name    string
	running int       // runs that hold a slot
	used    int64     // memory of those that have begun: with a slot, or without one for a while
	handed  int       // slots that were passed on here since a unit had its turn
	back    []*Permit // runs that gave up their slot for a while, and want one again; they come before all
}

func (m *machine) free() int { return m.Slots - m.running }

// takes reports whether a run with some needs may begin here at all.
func (m *machine) takes(needs []string) bool { return !m.Closed && m.has(needs) }

// has reports whether nothing is lacking of some needs.
func (m *machine) has(needs []string) bool {
	return !slices.ContainsFunc(needs, func(need string) bool { return !slices.Contains(m.Labels, need) })
}

// fits reports whether there is memory for a run. Where every run that has begun waits for its calls, none of them
// would ever end by waiting, and so the next one begins beyond the bound.
func (m *machine) fits(p *Permit) bool {
	return m.Memory == 0 || p.bytes == 0 || m.used+p.bytes <= m.Memory || m.running == 0
}

// SetMachine adds a machine, or changes it. What goes on there goes on.
func (q *Queue) SetMachine(name string, as Machine) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.machines.named(name)
	if m == nil {
		m = &machine{name: name}
		q.machines = append(q.machines, m)
	}
	m.Machine = as
	q.dispatch()
}

// RemoveMachine has no run begin or go on at a machine. Whoever leads those that are there ends them.
func (q *Queue) RemoveMachine(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.machines = slices.DeleteFunc(q.machines, func(m *machine) bool { return m.name == name && name != Local })
	q.dispatch()
}

// SetLabels says what the server itself has that not all machines have.
func (q *Queue) SetLabels(labels ...string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.machines[0].Labels = labels
	q.dispatch()
}

// SetMemory bounds the bytes that all runs at the server itself may take together; 0 is no bound.
func (q *Queue) SetMemory(bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.machines[0].Memory = bytes
	q.dispatch()
}

// Running returns how many runs hold a slot of a machine.
func (q *Queue) Running(name string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m := q.machines.named(name); m != nil {
		return m.running
	}
	return 0
}

// Memory returns the bound of the server itself, 0 for none, and how much of it runs take.
func (q *Queue) Memory() (total, used int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.machines[0].Memory, q.machines[0].used
}

// MostMemory returns the largest bound of the machines that have what a run needs, also of those that take nothing new;
// 0: one of them has no bound, or there is none.
func (q *Queue) MostMemory(needs []string) (most int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.machines {
		switch {
		case !m.has(needs):
		case m.Memory == 0:
			return 0
		default:
			most = max(most, m.Memory)
		}
	}
	return most
}

// machines are those of a queue, the server's own first. Its methods are called with the queue's lock held.
type machines []*machine

// named returns a machine; nil: there is none of that name.
func (all machines) named(name string) *machine {
	if at := slices.IndexFunc(all, func(m *machine) bool { return m.name == name }); at >= 0 {
		return all[at]
	}
	return nil
}

// running returns how many runs hold a slot.
func (all machines) running() (n int) {
	for _, m := range all {
		n += m.running
	}
	return n
}

// slots returns how many slots there are of machines that take a run with some needs.
func (all machines) slots(needs []string) (n int) {
	for _, m := range all {
		if m.takes(needs) {
			n += m.Slots
		}
	}
	return n
}

// runningOf returns how many runs hold one of those slots.
func (all machines) runningOf(needs []string) (n int) {
	for _, m := range all {
		if m.takes(needs) {
			n += m.running
		}
	}
	return n
}

// take reports whether a machine takes a run with some needs at all.
func (all machines) take(needs []string) bool {
	return slices.ContainsFunc(all, func(m *machine) bool { return m.takes(needs) })
}

// closed returns how many machines have what a run needs, and take nothing new.
func (all machines) closed(needs []string) (n int) {
	for _, m := range all {
		if m.Closed && m.has(needs) {
			n++
		}
	}
	return n
}

// have reports whether a machine that suits a run has a slot.
func (all machines) have(needs []string, rank func(machine string) int) bool {
	return slices.ContainsFunc(all, func(m *machine) bool { return m.free() > 0 && m.suits(needs, rank) })
}

// fit reports whether there is memory for a run on a machine that has a slot for it.
func (all machines) fit(p *Permit) bool {
	return slices.ContainsFunc(all, func(m *machine) bool {
		return m.free() > 0 && m.suits(p.needs, p.rank) && m.fits(p)
	})
}

// choose returns the machine on which the first run of a line begins now; nil: it doesn't. Of those that it may have,
// it is the one that the run ranks highest, then that with the most free slots. With a given machine it is that or
// none. It is called with the lock held.
func (q *Queue) choose(l *line, given *machine) (best *machine) {
	p, crowded := l.waiting[0], false
	if p.slotless {
		return q.machines[0]
	}
	if !q.mayHold(l) {
		return nil
	}
	for _, m := range l.unit.open(q.machines) {
		if m.free() <= 0 || !m.suits(p.needs, p.rank) || given != nil && m != given {
			continue
		}
		if !m.fits(p) {
			crowded = true
			continue
		}
		if !q.patience.keeps(q, m, p) && (best == nil || p.prefers(m, best)) {
			best = m
		}
	}
	q.patience.note(p, best != nil, crowded)
	return best
}

// suits reports whether a run with some needs, which ranks machines, may begin here now.
func (m *machine) suits(needs []string, rank func(machine string) int) bool {
	return m.takes(needs) && (rank == nil || rank(m.name) != Never)
}

// prefers reports whether a run rather begins at a machine than at another one.
func (p *Permit) prefers(m, other *machine) bool {
	if p.rank != nil {
		if a, b := p.rank(m.name), p.rank(other.name); a != b {
			return a > b
		}
	}
	return m.free() > other.free()
}
