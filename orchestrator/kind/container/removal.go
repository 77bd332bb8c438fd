package container

import (
	"context"

	"github.com/agent-on-demand/aod/runtime"
)

// removal removes the container of an attempt whose program has ended, while the result is
// read: nothing of that is in the container. It is for runs that end with this process. The
// container of a durable run stays until the outcome is stored: it is what another process
// goes on with.
type removal struct {
	over chan struct{} // closed when what follows is known

	exit      runtime.Exit
	unsettled error
	err       error
}

// removeAhead begins the removal, unless the container may be needed again.
func (a *attempt) removeAhead(ctx context.Context) {
	if a.x.Durable || a.ending == posted {
		return
	}
	ctx = context.WithoutCancel(ctx)
	r := &removal{over: make(chan struct{})}
	a.removal = r
	go func() { // remove waits for it
		defer close(r.over)
		if a.ending == reported {
			r.exit, r.unsettled = a.sandbox.AwaitExit(ctx)
		}
		r.err = a.sandbox.Remove(ctx)
	}()
}

// exit is a container's own end, or why it isn't known.
type exit struct {
	runtime.Exit
	err error
}

// settled returns the container's own end, after that of its program was reported. The engine tells
// it once.
func (a *attempt) settled(ctx context.Context) (runtime.Exit, error) {
	if a.removal != nil {
		<-a.removal.over
		return a.removal.exit, a.removal.unsettled
	}
	if a.exit == nil {
		end, err := a.sandbox.AwaitExit(ctx)
		a.exit = &exit{end, err}
	}
	return a.exit.Exit, a.exit.err
}

// remove removes the container, or returns when that is done.
func (a *attempt) remove(ctx context.Context) error {
	if a.removal == nil {
		return a.sandbox.Remove(ctx)
	}
	<-a.removal.over
	return a.removal.err
}
