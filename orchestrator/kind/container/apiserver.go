package container

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// apiServer is the capsule API of one attempt, on a socket of its own.
type apiServer struct {
	calls      run.ChildRuns
	handler    *handoff.Handler
	dispatcher *handoff.Dispatcher // of a sandbox that waited; else nil
	continues  bool                // see pool.ReuseSlot
	stop       context.CancelFunc
	served     chan struct{}
}

// openAPI listens on the socket in the attempt's directory. A container that is there
// already finds it at the same place. One that was kept goes on.
func (x *execution) openAPI(ctx context.Context, layout runtime.Layout, limits runtime.Limits) (*apiServer, error) {
	if kept := x.takeKept(); kept != nil {
		return kept, nil
	}
	a, err := x.newAPI(layout, limits)
	if err != nil {
		return nil, err
	}
	listener, err := layout.Listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("capsule api: %w", err)
	}
	ctx, a.stop = context.WithCancel(ctx)
	a.served = make(chan struct{})
	go func() {
		defer close(a.served)
		if err := a.handler.Serve(ctx, listener); err != nil {
			x.containers.logger.Warn("capsule api ended badly", "run", x.ID, fault.LogAttr(err))
		}
	}()
	return a, nil
}

// takeAPI assigns the API of a warm sandbox to the attempt: its program gets the run.
func (x *execution) takeAPI(s *pool.Sandbox, limits runtime.Limits) (*apiServer, error) {
	a, err := x.newAPI(s.Layout, limits)
	if err != nil {
		return nil, err
	}
	a.dispatcher, a.stop, a.served = s.API, s.Stop, s.Served
	s.API.Assign(a.handler)
	return a, nil
}

// newAPI makes an API that is not served yet.
func (x *execution) newAPI(layout runtime.Layout, limits runtime.Limits) (*apiServer, error) {
	if err := os.MkdirAll(placedIn(layout), 0o700); err != nil {
		return nil, run.StorageFault(err)
	}
	calls := x.Calls()
	limit := x.Handoffs
	limit.ResultBytes = limits.ResultBytes
	a := &apiServer{
		calls: calls, continues: x.saved.Slot.Continues(),
		handler: handoff.NewHandler(x.caller(layout, x.Deadline(limits.Timeout)), calls, limit, x.containers.logger,
			calls.Mounts()...),
	}
	a.handler.Remember(calls.Keys()...)
	return a, nil
}

// asked reports whether the program has asked for its run.
func (a *apiServer) asked() bool { return a != nil && a.handler.Asked() }

// done returns a channel that is closed when the attempt has ended and its container goes on.
// It returns nil if the container serves one run only.
func (a *apiServer) done() <-chan struct{} {
	if a == nil || !a.continues {
		return nil
	}
	return a.handler.Posted()
}

// caller describes the run to the broker.
func (x *execution) caller(layout runtime.Layout, deadline time.Time) handoff.Caller {
	caller := x.Caller(deadline)
	caller.Outgoing, caller.Incoming, caller.Placed = layout.Outgoing(), layout.Incoming(), placedIn(layout)
	caller.Result = layout.PostedResult()
	if slot := x.saved.Slot; slot.Continues() {
		caller.Reuse = true
		if slot.Told {
			caller.Remaining = slot.Remaining
		}
	}
	if transfer := layout.FileTransfer(); transfer != nil {
		caller.Transfer = transfer
	} else {
		caller.Output = layout.WrittenOutput()
	}
	return caller
}

// placedIn returns the path where the broker remembers which files it brought back.
func placedIn(layout runtime.Layout) string { return filepath.Join(layout.Dir, "placed") }

// endCallsWith ends the calls when ctx ends, at the same time as the container.
func (a *apiServer) endCallsWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { a.calls.CancelAll(context.Cause(ctx)) })
}

// close ends the API and every live call.
func (a *apiServer) close(cause error) {
	if a == nil {
		return
	}
	a.stop()
	<-a.served
	a.endCalls(cause)
}

// releaseTime is how long the attempt's requests under way have until they must end.
const releaseTime = 5 * time.Second

// release takes the API from the attempt and ends every live call. If it returns false, the
// caller has to close the API.
func (a *apiServer) release(cause error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	if a.dispatcher.Release(ctx) != nil {
		return false
	}
	a.endCalls(cause)
	return true
}

// endCalls ends every live call, and what other protocols have kept of the run.
func (a *apiServer) endCalls(cause error) {
	a.calls.End(cause)
	_ = a.handler.Close() // sessions of a program that has ended
}
