package queue

// memory bounds the sum of what runs may take that have begun: those with a slot, and those
// that gave it up for a while, whose sandboxes are still there. Its fields are read and set
// with the queue's lock held.
type memory struct {
	total int64 // 0 is no bound
	used  int64

	first  *Permit // the run that waits for memory, where others have passed it; nil for none
	passed int     // how many have
}

// SetMemory bounds the bytes that all runs together may take; 0 is no bound.
func (q *Queue) SetMemory(bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.memory.total = bytes
	q.dispatch()
}

// Memory returns the bound, 0 for none, and how much of it runs take.
func (q *Queue) Memory() (total, used int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.memory.total, q.memory.used
}

// The methods below are called with the lock held.

// admits reports whether the first run of a line may begin as far as memory is concerned. A
// run that doesn't fit is passed by inARow others at most: then nothing begins before it does.
// Where every run that has begun waits for its calls, none of them would ever end by waiting,
// and so the next one begins beyond the bound.
func (q *Queue) admits(l *line) bool {
	m, p := &q.memory, l.waiting[0]
	fits := q.fits(p)
	switch {
	case m.first == nil || m.first == p:
		if !fits {
			m.first = p
		}
		return fits
	case m.passed >= inARow && p.bytes > 0 && m.first.line.unit.mayRun() && q.mayHold(m.first.line):
		return false
	case fits && p.bytes > 0:
		m.passed++
	}
	return fits
}

// fits reports whether there is memory for a run.
func (q *Queue) fits(p *Permit) bool {
	m := &q.memory
	return m.total == 0 || p.bytes == 0 || m.used+p.bytes <= m.total || q.running == 0
}

// take counts a run that begins. One that had given up its slot has been counted before.
func (m *memory) take(p *Permit) {
	m.forget(p)
	if !p.counted {
		p.counted = true
		m.used += p.bytes
	}
}

// give counts a run no more.
func (m *memory) give(p *Permit) {
	m.forget(p)
	if p.counted {
		p.counted = false
		m.used -= p.bytes
	}
}

// forget begins anew where the run waited for memory.
func (m *memory) forget(p *Permit) {
	if m.first == p {
		m.first, m.passed = nil, 0
	}
}
