package queue

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
