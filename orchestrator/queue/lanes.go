package queue

import "slices"

// Ahead returns how many runs of a unit wait for their first slot, and how many may go on at once while the units that
// are busy now have their shares of the slots; both are 0 where none of its runs waits or goes on.
func (q *Queue) Ahead(unit string) (waiting, lanes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.units[unit]
	if u == nil {
		return 0, 0
	}
	slots, memory := q.machines.slots(nil), q.machines[0].Memory
	if u.slotless {
		return u.waiting, u.most(u.running+u.waiting, memory)
	}
	var others []int
	for _, other := range q.units {
		if other != u && !other.slotless {
			others = append(others, other.most(other.running+other.waiting, memory))
		}
	}
	return u.waiting, max(1, u.most(share(slots, others), memory))
}

// most returns how many of so many runs of the unit its limit and the memory let go on at once.
func (u *unitQueue) most(runs int, memory int64) int {
	if bytes := u.bytes(); memory > 0 && bytes > 0 {
		runs = min(runs, int(memory/bytes))
	}
	if u.limit > 0 {
		runs = min(runs, u.limit)
	}
	return runs
}

// bytes is what a run of the unit that waits may take; 0: none waits.
func (u *unitQueue) bytes() (bytes int64) {
	for _, l := range u.lines {
		if len(l.waiting) > 0 {
			bytes = max(bytes, l.waiting[0].bytes)
		}
	}
	return bytes
}

// share returns how many slots are left for one more in turn, where others want so many: who wants
// less than its part leaves the rest.
func share(slots int, others []int) int {
	slices.Sort(others)
	for i, wanted := range others {
		parts := len(others) - i + 1
		if wanted*parts >= slots {
			return slots / parts
		}
		slots -= wanted
	}
	return slots
}
