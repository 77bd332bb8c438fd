package queue

import (
	"context"
	"errors"
	"time"
)

// Permit is the place of one run in the queue, and then its slot. Queue.Enter, Reenter
// and Occupy make one; whoever has it calls Leave in the end. It is safe for concurrent
// use.
type Permit struct {
	queue   *Queue
	id      string
	line    *line
	token   *token        // with which the run was asked for; nil: none that has a name
	granted chan struct{} // closed when the run has its slot
	machine *machine      // where it has it, or had it last; nil before
	needs   []string
	rank    func(machine string) int
	state   permitState
	since   time.Time // when it came
	bytes   int64     // of memory that the run may take
	counted bool      // they are in the queue's sum
	holds   bool      // further runs of its unit back, while it is suspended

	slotless bool // see Run
}

type permitState uint8

const (
	waiting permitState = iota
	granted
	suspended
	gone
)

var errNoSlot = errors.New("the run holds no slot")

func newPermit(q *Queue, l *line, r Run) *Permit {
	l.unit.slotless = r.Slotless
	l.permits++
	p := &Permit{
		queue: q, id: r.ID, line: l, token: q.tokenOf(r.Token), needs: r.Needs, rank: r.Rank, bytes: r.Bytes,
		slotless: r.Slotless, granted: make(chan struct{}), since: time.Now(),
	}
	if p.token != nil {
		p.token.permits++
	}
	return p
}

// Wait returns nil when the run has its slot. When ctx ends first, it returns the cause
// and the permit has left the queue. A run whose ctx has ended never gets a slot, also
// when one is free at that moment.
func (p *Permit) Wait(ctx context.Context) error {
	p.queue.mu.Lock()
	slot := p.granted
	p.queue.mu.Unlock()
	select {
	case <-slot:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		p.Leave()
		return context.Cause(ctx)
	}
	return nil
}

// Machine returns the name of the machine on which the run has its slot, or had it last.
func (p *Permit) Machine() string {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.machine == nil {
		return Local
	}
	return p.machine.name
}

// Leave gives up the slot or the place in the queue. A second call does nothing.
func (p *Permit) Leave() { p.leave(nil) }

// PassOn is Leave, but the next run of the same unit comes before those of other units: what
// served this run can serve that one. Every unit has its turn after inARow of such runs.
func (p *Permit) PassOn() { p.leave(p) }

// leave gives up the slot or the place in the queue. The slot of an heir goes to a run of its line, if one waits.
func (p *Permit) leave(heir *Permit) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	switch p.state {
	case waiting:
		p.queue.withdraw(p)
	case granted:
		p.queue.vacate(p)
	case suspended:
		p.line.unit.suspended--
		p.letOn()
	}
	if p.state != gone {
		p.line.permits--
		if p.token != nil {
			p.token.permits--
			p.queue.forgetToken(p.token)
		}
	}
	p.state = gone
	p.give()
	p.queue.heir = heir
	p.queue.dispatch()
	p.queue.heir = nil
	p.queue.forget(p.line)
}

// Aside gives the slot to other units while wait is called, and takes one again. Runs of the
// same unit that have not begun stay behind this one on its machine: they would need what it waits for. When
// ctx ends before it has a slot, Aside returns the cause.
func (p *Permit) Aside(ctx context.Context, wait func()) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.holdBack()
	_ = p.suspend() // a run that has no slot now has none to give up
	wait()
	if err := p.resume(ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (p *Permit) holdBack() {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.state == granted && !p.holds && !p.slotless {
		p.holds = true
		p.line.unit.held[p.machine]++
	}
}

// letOn ends what holdBack began. It is called with the lock held.
func (p *Permit) letOn() {
	if p.holds {
		p.holds = false
		held := p.line.unit.held
		if held[p.machine]--; held[p.machine] == 0 {
			delete(held, p.machine)
		}
	}
}

// suspend gives the slot to others until resume. A run without a slot gets errNoSlot.
func (p *Permit) suspend() error {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.state != granted || p.slotless {
		return errNoSlot
	}
	p.state, p.granted = suspended, make(chan struct{})
	p.line.unit.suspended++
	p.queue.vacate(p)
	p.queue.dispatch()
	return nil
}

// resume waits for a slot again. The run comes before all runs that have not begun. When
// ctx ends first, resume returns the cause and the run stays suspended.
func (p *Permit) resume(ctx context.Context) error {
	slot, has := p.askAgain()
	if has {
		return nil
	}
	select {
	case <-slot:
		return nil
	case <-ctx.Done():
		p.suspendAgain()
		return context.Cause(ctx)
	}
}

// askAgain lets a suspended run wait for a slot. It returns what is closed when the run
// has one, and whether it has one already.
func (p *Permit) askAgain() (slot <-chan struct{}, has bool) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.state == suspended {
		p.state = waiting
		p.line.unit.suspended--
		p.letOn()
		p.machine.back = append(p.machine.back, p)
		p.queue.dispatch()
	}
	return p.granted, p.state == granted
}

func (p *Permit) suspendAgain() {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if p.state != waiting {
		return // it was granted at that very moment, or left
	}
	p.machine.back = remove(p.machine.back, p)
	p.state = suspended
	p.line.unit.suspended++
}
