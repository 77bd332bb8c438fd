package workers

import (
	"context"
	"net/http"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
)

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

// slot takes whether a run does without its slot. It is asked for again where that takes long.
func (h face) slot(w http.ResponseWriter, r *http.Request, l *lease) error {
	var told wire.Loan
	if err := read(r, httpwire.SmallBody, &told); err != nil {
		return err
	}
	l.tell(func() { l.lent = told.Lent })
	if told.Lent {
		return done(w)
	}
	ctx, cancel := context.WithTimeout(r.Context(), endTime)
	defer cancel()
	if l.repaid(ctx) != nil {
		return fault.New(fault.Unavailable, "the run hasn't its slot again yet").WithHint("ask again")
	}
	return done(w)
}
