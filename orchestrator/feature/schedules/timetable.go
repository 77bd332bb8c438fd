package schedules

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules/due"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// planned is a schedule in this process. Its lock is held while it is looked at or changed, which
// takes as long as the start of a run.
type planned struct {
	name string

	mu      sync.Mutex
	seq     int64
	plan    *due.Plan
	until   time.Time // every planned time up to it was looked at
	fired   int
	paused  bool
	gone    bool               // it was removed
	waiting []store.Occurrence // for the end of a run of it, the oldest first

	// By the lock of the timetable:
	unit  string
	owner access.Owner
	due   time.Time // meaningful in its heap
	index int       // there; -1: it isn't in it
}

// timetable has the schedules by the time at which they are to be looked at, and their runs that
// go on.
type timetable struct {
	changing sync.Mutex    // one schedule is made, changed or removed at a time
	changed  chan struct{} // has a value when there is something to do earlier than before

	mu    sync.Mutex
	known map[string]*planned
	next  byDue
	freed []*planned                 // a run of which has ended
	going map[string]map[string]bool // ids of runs, by schedule
}

func newTimetable() *timetable {
	return &timetable{
		changed: make(chan struct{}, 1), known: map[string]*planned{},
		going: map[string]map[string]bool{},
	}
}

// wake has whoever waits for the next time look again.
func (t *timetable) wake() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

func (t *timetable) find(name string) *planned {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[name]
}

func (t *timetable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.known)
}

func (t *timetable) add(p *planned) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.index = -1
	t.known[p.name] = p
}

func (t *timetable) remove(p *planned) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, p.name)
	if p.index >= 0 {
		heap.Remove(&t.next, p.index)
	}
}

// evaluateAt has a schedule evaluated, at a time and not before; zero is never.
func (t *timetable) evaluateAt(p *planned, due time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.index >= 0 {
		heap.Remove(&t.next, p.index)
	}
	if due.IsZero() || t.known[p.name] != p {
		return
	}
	p.due = due
	heap.Push(&t.next, p)
	if p.index == 0 {
		t.wake()
	}
}

// takeDue takes those out that are due or freed, and returns when the next one is due; zero if there
// is none.
func (t *timetable) takeDue(now time.Time) (due []*planned, next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	due, t.freed = t.freed, nil
	for len(t.next) > 0 && !t.next[0].due.After(now) {
		due = append(due, heap.Pop(&t.next).(*planned))
	}
	if len(t.next) > 0 {
		next = t.next[0].due
	}
	return due, next
}

// serve notes which unit's runs a schedule starts, and for whom.
func (t *timetable) serve(p *planned, unit string, owner access.Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.unit, p.owner = unit, owner
}

// nextOf returns when the next run of a unit is due, of those that the client of ctx may know of; nil: there is none.
func (t *timetable) nextOf(ctx context.Context, unit string) *api.NextTime {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next *planned
	for _, p := range t.next {
		if p.unit == unit && access.Sees(ctx, p.owner) && (next == nil || p.due.Before(next.due)) {
			next = p
		}
	}
	if next == nil {
		return nil
	}
	return &api.NextTime{Schedule: next.name, At: next.due.UTC()}
}

// join notes that a run of a schedule goes on.
func (t *timetable) join(name, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.going[name] == nil {
		t.going[name] = map[string]bool{}
	}
	t.going[name][id] = true
}

// leave notes that a run of a schedule doesn't go on here. If it is over, what waited for it may begin.
func (t *timetable) leave(name, id string, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.going[name], id)
	if len(t.going[name]) == 0 {
		delete(t.going, name)
	}
	if p := t.known[name]; p != nil && over {
		t.freed = append(t.freed, p)
		t.wake()
	}
}

// runs returns the runs of a schedule that go on.
func (t *timetable) runs(name string) (ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.going[name] {
		ids = append(ids, id)
	}
	return ids
}

// byDue is a heap.
type byDue []*planned

func (b byDue) Len() int           { return len(b) }
func (b byDue) Less(i, j int) bool { return b[i].due.Before(b[j].due) }
func (b byDue) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].index, b[j].index = i, j
}

// Push implements heap.Interface.
func (b *byDue) Push(x any) {
	p := x.(*planned)
	p.index = len(*b)
	*b = append(*b, p)
}

// Pop implements heap.Interface.
func (b *byDue) Pop() any {
	last := len(*b) - 1
	p := (*b)[last]
	(*b)[last] = nil
	*b, p.index = (*b)[:last], -1
	return p
}
