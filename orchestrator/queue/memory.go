package queue

// patience bounds how often others may pass a run that doesn't fit into the memory of any machine now: by inARow at
// most. Then nothing that takes memory begins where it may, before it does.
type patience struct {
	first  *Permit // the run that waits for memory, where others have passed it; nil for none
	passed int     // how many have
}

// keeps reports whether a machine is kept for the run that was passed by so many.
func (w *patience) keeps(q *Queue, m *machine, p *Permit) bool {
	return w.first != nil && w.first != p && w.passed >= inARow && p.bytes > 0 && m.takes(w.first.needs) &&
		w.first.line.unit.held[m] == 0 && w.first.line.unit.mayResume() && q.mayHold(w.first.line)
}

// note notes that a run was looked at: that it begins, or that no machine that it may have had the memory.
func (w *patience) note(p *Permit, begins, crowded bool) {
	switch {
	case w.first != nil && w.first != p:
		if begins && p.bytes > 0 {
			w.passed++
		}
	case crowded && !begins:
		w.first = p
	}
}

// forget begins anew where the run waited for memory.
func (w *patience) forget(p *Permit) {
	if w.first == p {
		*w = patience{}
	}
}

// take counts the memory of a run that begins. One that had given up its slot has been counted before.
func (p *Permit) take() {
	p.queue.patience.forget(p)
	if !p.counted {
		p.counted = true
		p.machine.used += p.bytes
	}
}

// give counts it no more.
func (p *Permit) give() {
	p.queue.patience.forget(p)
	if p.counted {
		p.counted = false
		p.machine.used -= p.bytes
	}
}
