package queue

// unitQueue is the queue of one unit. It exists while the unit has a permit.
type unitQueue struct {
	unit    string
	limit   int // runs at once; 0 is no limit
	running int
	waiting []*Permit // for their first slot, in the order of arrival

	suspended int // runs that gave up their slot for a while
}

func (u *unitQueue) mayRun() bool { return u.limit == 0 || u.running < u.limit }

func (u *unitQueue) empty() bool { return u.running+u.suspended+len(u.waiting) == 0 }
