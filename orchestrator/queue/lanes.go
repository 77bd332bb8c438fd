package queue

import "slices"

// Lanes returns how many runs of a unit may go on at once while the units that are busy now have
// their shares of the slots; 0 where none of its runs waits or goes on.
func (q *Queue) Lanes(unit string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.units[unit]
	if u == nil {
		return 0
	}
	slots := q.free + q.running
	if u.slotless {
		return u.most(u.running+len(u.waiting), q.memory.total)
	}
	var others []int
	for _, other := range q.units {
		if other != u && !other.slotless {
			others = append(others, other.most(other.running+len(other.waiting), q.memory.total))
		}
	}
	return max(1, u.most(share(slots, others), q.memory.total))
}

// most returns how many of so many runs of the unit its limit and the memory let go on at once.
func (u *unitQueue) most(runs int, memory int64) int {
	if memory > 0 && len(u.waiting) > 0 && u.waiting[0].bytes > 0 {
		runs = min(runs, int(memory/u.waiting[0].bytes))
	}
	if u.limit > 0 {
		runs = min(runs, u.limit)
	}
	return runs
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
