package orchestrator

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/fault"
)

// queue admits runs to the slots: first come, first served within a unit, and the
// units in turn, so that a busy one doesn't starve the others.
type queue struct {
	mu      sync.Mutex
	free    int // slots; below zero after a restart with more runs than slots
	running int
	lanes   map[string]*lane
	turn    []*lane // lanes with somebody waiting; the first is served next

	resuming []*ticket // runs that gave up their slot for a while; they come before all
}

// lane is the queue of one unit. It exists while it has a ticket.
type lane struct {
	unit    string
	limit   int // runs at once; 0 is no limit
	running int
	waiting []*ticket

	suspended int // of its runs
}

// ticket is one run's place in the queue, and then its slot.
type ticket struct {
	queue   *queue
	lane    *lane
	granted chan struct{} // closed when the slot is its own
	state   ticketState
}

type ticketState uint8

const (
	ticketWaiting ticketState = iota
	ticketGranted
	ticketSuspended
	ticketGone
)

func newQueue(slots int) *queue { return &queue{free: slots, lanes: map[string]*lane{}} }

// enter gives a run a place: limit is how many of the unit may run at once, bound how
// many may wait. A full queue is a Busy fault.
func (q *queue) enter(unit string, limit, bound int) (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lane(unit, limit)
	if len(l.waiting) >= bound && !q.open(l) {
		q.forget(l)
		return nil, fault.New(fault.Busy, "%d runs of %q are waiting already", len(l.waiting), unit).
			WithHint("try again later; the setting `queue` says how many may wait")
	}
	return q.join(l), nil
}

// reenter gives a place to a run that had one before: nobody may refuse it.
func (q *queue) reenter(unit string, limit int) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.join(q.lane(unit, limit))
}

// occupy gives a slot to a run that runs already, also where none is free.
func (q *queue) occupy(unit string, limit int) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &ticket{queue: q, lane: q.lane(unit, limit), granted: make(chan struct{})}
	q.grant(t)
	return t
}

// counts returns how many run, and how many wait for each unit.
func (q *queue) counts() (running int, waiting map[string]int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting = map[string]int{}
	for name, l := range q.lanes {
		if len(l.waiting) > 0 {
			waiting[name] = len(l.waiting)
		}
	}
	return q.running, waiting
}

// wait returns when the slot is the run's own, or with the cause of ctx's end, and
// then the place is lost. What ends all runs frees slots: none begins with one of those.
func (t *ticket) wait(ctx context.Context) error {
	t.queue.mu.Lock()
	granted := t.granted
	t.queue.mu.Unlock()
	select {
	case <-granted:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		t.leave()
		return context.Cause(ctx)
	}
	return nil
}

// leave gives up the slot or the place. It may be called again.
func (t *ticket) leave() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	switch t.state {
	case ticketWaiting:
		t.queue.resuming = without(t.queue.resuming, t)
		t.lane.waiting = without(t.lane.waiting, t)
		t.queue.retire(t.lane)
	case ticketGranted:
		t.queue.vacate(t.lane)
	case ticketSuspended:
		t.lane.suspended--
	}
	t.state = ticketGone
	t.queue.dispatch()
	t.queue.forget(t.lane)
}

var errNoSlot = errors.New("the run holds no slot")

// suspend gives the slot to others while the run waits for a run that it called.
func (t *ticket) suspend() error {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if t.state != ticketGranted {
		return errNoSlot
	}
	t.state, t.granted = ticketSuspended, make(chan struct{})
	t.lane.suspended++
	t.queue.vacate(t.lane)
	t.queue.dispatch()
	return nil
}

// resume waits for a slot again, before all runs that have not begun. When ctx ends first
// the run stays suspended.
func (t *ticket) resume(ctx context.Context) error {
	t.queue.mu.Lock()
	if t.state == ticketSuspended {
		t.state = ticketWaiting
		t.lane.suspended--
		t.queue.resuming = append(t.queue.resuming, t)
		t.queue.dispatch()
	}
	granted, has := t.granted, t.state == ticketGranted
	t.queue.mu.Unlock()
	if has {
		return nil
	}
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
		t.suspendAgain()
		return context.Cause(ctx)
	}
}

func (t *ticket) suspendAgain() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if t.state != ticketWaiting {
		return // it was granted at that very moment, or left
	}
	t.queue.resuming = without(t.queue.resuming, t)
	t.state = ticketSuspended
	t.lane.suspended++
}

// What follows is called with the lock held.

func (q *queue) lane(unit string, limit int) *lane {
	l := q.lanes[unit]
	if l == nil {
		l = &lane{unit: unit}
		q.lanes[unit] = l
	}
	l.limit = limit // the newest word counts
	return l
}

func (q *queue) join(l *lane) *ticket {
	t := &ticket{queue: q, lane: l, granted: make(chan struct{})}
	l.waiting = append(l.waiting, t)
	q.schedule(l)
	q.dispatch()
	return t
}

// schedule gives a lane its turn, behind those that have theirs.
func (q *queue) schedule(l *lane) {
	if len(l.waiting) == 1 {
		q.turn = append(q.turn, l)
	}
}

// dispatch hands out free slots: to those that had one before, then to the units in turn.
func (q *queue) dispatch() {
	for q.free > 0 {
		t := q.next()
		if t == nil {
			return
		}
		q.grant(t)
	}
}

func (q *queue) next() *ticket {
	for _, t := range q.resuming {
		if t.lane.mayRun() {
			q.resuming = without(q.resuming, t)
			return t
		}
	}
	for _, l := range q.turn {
		if l.mayRun() {
			return q.take(l)
		}
	}
	return nil
}

// take returns the lane's first ticket. The lane goes behind the others, if more of
// its runs are waiting.
func (q *queue) take(l *lane) *ticket {
	t := l.waiting[0]
	l.waiting = l.waiting[1:]
	q.turn = without(q.turn, l)
	if len(l.waiting) > 0 {
		q.turn = append(q.turn, l)
	}
	return t
}

func (l *lane) mayRun() bool { return l.limit == 0 || l.running < l.limit }

// open reports whether a run of the lane would start at once.
func (q *queue) open(l *lane) bool { return q.free > 0 && l.mayRun() && len(l.waiting) == 0 }

func (q *queue) grant(t *ticket) {
	q.free--
	q.running++
	t.lane.running++
	t.state = ticketGranted
	close(t.granted)
}

func (q *queue) vacate(l *lane) {
	q.free++
	q.running--
	l.running--
}

// retire takes the turn of a lane in which nobody waits any more.
func (q *queue) retire(l *lane) {
	if len(l.waiting) == 0 {
		q.turn = without(q.turn, l)
	}
}

func (q *queue) forget(l *lane) {
	if l.running+l.suspended+len(l.waiting) == 0 {
		delete(q.lanes, l.unit)
	}
}

// without returns the list without one element, in a new array: somebody may be going
// over the old one.
func without[T comparable](list []T, gone T) []T {
	i := slices.Index(list, gone)
	if i < 0 {
		return list
	}
	return slices.Concat(list[:i], list[i+1:])
}
