package queue

// team is whose runs have their turn together. It exists while it has a permit.
type team struct {
	name    string
	running int // runs that hold a slot
	waiting int // runs, for their first slot
	lines   int
	turn    []*line // those with a waiting run; the first is served next
}

// Bounds are the most that a team may have; 0 is no bound.
type Bounds struct {
	Slots  int // that its runs hold at once
	Queued int // runs that wait for their first slot
}

// SetBounds bounds teams by their names, from now on. Who has more goes on.
func (q *Queue) SetBounds(bounds map[string]Bounds) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bounds = bounds
	q.dispatch()
}

// OfTeam returns how many slots a team holds, and how many of its runs wait for their first one.
func (q *Queue) OfTeam(name string) (running, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.teams[name]; t != nil {
		return t.running, t.waiting
	}
	return 0, 0
}

// mayHold reports whether a team may hold one more slot. It is called with the lock held.
func (q *Queue) mayHold(t *team) bool {
	most := q.bounds[t.name].Slots
	return most == 0 || t.running < most
}
