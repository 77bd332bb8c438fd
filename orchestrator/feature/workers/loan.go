package workers

import "context"

// loan is the time for which a run at a worker gives its slot to others.
type loan struct {
	repay func()          // it wants its slot again
	due   <-chan struct{} // closed by repay
	over  chan struct{}   // closed when it has it, or wants none any more
}

// lend gives the slot of a run to others from when its worker says so until it says otherwise.
func (x *execution) lend(ctx context.Context, l *lease, wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wanted = wanted && l.lent // it may have changed its mind
	switch {
	case !wanted && l.loan != nil:
		l.loan.repay()
	case wanted && l.loan == nil:
		of := &loan{over: make(chan struct{})}
		of.due, of.repay = moment()
		l.loan = of
		go func() { // repaid waits for it
			defer close(of.over)
			// it has none only if the run is to end
			_ = x.run.Aside(ctx, func() { _ = untilOver(ctx, of.due) })
			l.tell(func() { l.loan = nil })
		}()
	}
}

// takeBack ends the loan, if there is one, and returns when it is over.
func (l *lease) takeBack(ctx context.Context, stop func()) {
	stop()
	_ = l.repaid(context.WithoutCancel(ctx)) // it waits no more
}

// repaid waits until a run has its slot again.
func (l *lease) repaid(ctx context.Context) error {
	l.mu.Lock()
	of := l.loan
	l.mu.Unlock()
	if of == nil {
		return nil
	}
	of.repay()
	return untilOver(ctx, of.over)
}
