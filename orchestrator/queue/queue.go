package queue

import (
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
)

// Queue hands out slots: first come, first served within a unit, and the units in turn,
// so that a busy unit doesn't starve the others. It is safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	free    int // slots; below zero after a restart with more runs than slots
	running int
	closed  bool // no run begins any more
	units   map[string]*unitQueue
	turn    []*unitQueue // units with a waiting run; the first is served next

	heir   *unitQueue // to which the slot that becomes free is passed on; nil for none
	passed int        // slots that were passed on, since a unit had its turn

	memory memory

	resuming []*Permit // runs that gave up their slot for a while; they come before all
}

// New returns an empty queue with that many slots.
func New(slots int) *Queue { return &Queue{free: slots, units: map[string]*unitQueue{}} }

// Run is what the queue has to know of a run.
type Run struct {
	ID    string // for PlaceOf
	Unit  string
	Limit int   // runs of the unit at once; 0 is no limit, and the newest limit counts for all of them
	Bytes int64 // of memory that it may take; 0 is none that counts
	// Slotless says that the run does nothing but wait for what it calls: it takes no slot, and
	// counts in its unit's limit alone, from its permit's grant until it leaves.
	Slotless bool
}

// Enter gives a run a place in the queue of its unit. At most bound runs of the unit may wait: a run that would have to
// wait beyond that is refused with a Busy fault.
func (q *Queue) Enter(r Run, bound int) (*Permit, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.unitQueue(r.Unit, r.Limit)
	if err := q.takes(r, u, bound); err != nil {
		q.forget(u)
		return nil, err
	}
	return q.join(u, r), nil
}

// Takes returns the Busy fault with which Enter would refuse a run. It gives no place.
func (q *Queue) Takes(r Run, bound int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.unitQueue(r.Unit, r.Limit)
	defer q.forget(u)
	return q.takes(r, u, bound)
}

func (q *Queue) takes(r Run, u *unitQueue, bound int) error {
	if len(u.waiting) >= bound && !q.startsAtOnce(r, u) {
		return fault.New(fault.Busy, "%d runs of %q are waiting already", len(u.waiting), r.Unit).
			WithHint("try again later; the setting `queue` says how many may wait")
	}
	return nil
}

// Reenter gives a place to a run that was accepted before. It never refuses, however
// many wait.
func (q *Queue) Reenter(r Run) *Permit {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.join(q.unitQueue(r.Unit, r.Limit), r)
}

// Occupy gives a slot to a run that runs already, such as one that survived a restart,
// also when no slot or memory is free. This run may exceed the unit's limit.
func (q *Queue) Occupy(r Run) *Permit {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := newPermit(q, q.unitQueue(r.Unit, r.Limit), r)
	q.grant(p)
	return p
}

// Close lets no further run begin. Who waits for a first slot waits until its context ends;
// runs that gave up their slot for a while get one again.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// Counts returns how many runs hold a slot, and how many wait for their first one by unit.
// A unit without waiting runs is not in the map.
func (q *Queue) Counts() (running int, waiting map[string]int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting = map[string]int{}
	for name, u := range q.units {
		if len(u.waiting) > 0 {
			waiting[name] = len(u.waiting)
		}
	}
	return q.running, waiting
}

// Waiting returns how many runs of a unit wait for their first slot.
func (q *Queue) Waiting(unit string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if u := q.units[unit]; u != nil {
		return len(u.waiting)
	}
	return 0
}

// The methods below are called with the lock held.

// unitQueue returns the queue of a unit, a new one if there is none.
func (q *Queue) unitQueue(unit string, limit int) *unitQueue {
	u := q.units[unit]
	if u == nil {
		u = &unitQueue{unit: unit}
		q.units[unit] = u
	}
	u.limit = limit // the newest limit counts
	return u
}

// startsAtOnce reports whether a new run of the unit would get a slot at once.
func (q *Queue) startsAtOnce(r Run, u *unitQueue) bool {
	return (q.free > 0 || r.Slotless) && u.mayRun() && len(u.waiting) == 0
}

func (q *Queue) join(u *unitQueue, r Run) *Permit {
	p := newPermit(q, u, r)
	u.waiting = append(u.waiting, p)
	q.schedule(u)
	q.dispatch()
	return p
}

// schedule puts a unit whose first run waits behind the other units in turn.
func (q *Queue) schedule(u *unitQueue) {
	if len(u.waiting) == 1 {
		q.turn = append(q.turn, u)
	}
}

// dispatch hands out the free slots, and lets runs begin that take none.
func (q *Queue) dispatch() {
	for p := q.next(); p != nil; p = q.next() {
		q.grant(p)
	}
}

// inARow is how many slots may be passed on within a unit before the other units have their
// turn.
const inARow = 16

// next takes the permit that is served next out of the queue: first of the runs that
// had a slot before, then of the unit to which a slot is passed on, then of the units in
// turn. It is nil when nobody may run.
func (q *Queue) next() *Permit {
	for _, p := range q.resuming {
		if q.free > 0 && p.unit.mayResume() {
			q.resuming = remove(q.resuming, p)
			return p
		}
	}
	if q.closed {
		return nil
	}
	if u := q.heir; u != nil && len(u.waiting) > 0 && u.mayRun() && q.passed < inARow && q.hasSlot(u) && q.admits(u) {
		q.heir = nil
		q.passed++
		return q.take(u)
	}
	for _, u := range q.turn {
		if u.mayRun() && q.hasSlot(u) && q.admits(u) {
			p := q.take(u)
			if !p.slotless {
				q.passed = 0
			}
			return p
		}
	}
	return nil
}

// hasSlot reports whether there is a slot for the unit's first run, or it needs none.
func (q *Queue) hasSlot(u *unitQueue) bool { return q.free > 0 || u.waiting[0].slotless }

// take returns the unit's first permit. If more of its runs wait, the unit goes behind
// the others.
func (q *Queue) take(u *unitQueue) *Permit {
	p := u.waiting[0]
	u.waiting = u.waiting[1:]
	q.turn = remove(q.turn, u)
	if len(u.waiting) > 0 {
		q.turn = append(q.turn, u)
	}
	return p
}

func (q *Queue) grant(p *Permit) {
	if !p.slotless {
		q.free--
		q.running++
	}
	p.unit.running++
	p.state = granted
	q.memory.take(p)
	close(p.granted)
}

func (q *Queue) vacate(p *Permit) {
	if !p.slotless {
		q.free++
		q.running--
	}
	p.unit.running--
}

// withdraw takes a waiting permit out of the queue.
func (q *Queue) withdraw(p *Permit) {
	q.resuming = remove(q.resuming, p)
	p.unit.waiting = remove(p.unit.waiting, p)
	if len(p.unit.waiting) == 0 {
		q.turn = remove(q.turn, p.unit)
	}
}

// forget deletes the queue of a unit that has no permit any more.
func (q *Queue) forget(u *unitQueue) {
	if u.empty() {
		delete(q.units, u.unit)
	}
}

func remove[T comparable](list []T, gone T) []T {
	return slices.DeleteFunc(list, func(one T) bool { return one == gone })
}

// unitQueue is the queue of one unit. It exists while the unit has a permit.
type unitQueue struct {
	unit    string
	limit   int // runs at once; 0 is no limit
	running int
	waiting []*Permit // for their first slot, in the order of arrival

	suspended int // runs that gave up their slot for a while
	held      int // of those, the ones behind which the waiting runs stay

	slotless bool // see Run
}

// mayRun reports whether a run of the unit may begin.
func (u *unitQueue) mayRun() bool { return u.held == 0 && u.mayResume() }

// mayResume reports whether a run of the unit may go on that gave up its slot.
func (u *unitQueue) mayResume() bool { return u.limit == 0 || u.running < u.limit }

func (u *unitQueue) empty() bool { return u.running+u.suspended+len(u.waiting) == 0 }
