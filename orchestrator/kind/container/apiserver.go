package container

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// apis make the capsule APIs of a run's attempts.
type apis struct {
	run     *run.Run
	machine *machine
	saved   *saved
	kept    *apiServer // which a program goes on using while the engine is away; nil: none
}

// open listens on the socket in the attempt's directory. A container that is there
// already finds it at the same place. One that was kept goes on.
func (a *apis) open(ctx context.Context, layout runtime.Layout, limits runtime.Limits) (*apiServer, error) {
	if kept := a.takeKept(); kept != nil {
		return kept, nil
	}
	server, err := a.make(layout, limits)
	if err != nil {
		return nil, err
	}
	listener, err := layout.Listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("capsule api: %w", err)
	}
	ctx, server.stop = context.WithCancel(ctx)
	server.served = make(chan struct{})
	go func() {
		defer close(server.served)
		if err := server.handler.Serve(ctx, listener); err != nil {
			a.machine.logger.Warn("capsule api ended badly", "run", a.run.ID, fault.LogAttr(err))
		}
	}()
	return server, nil
}

// take assigns the API of a warm sandbox to the attempt: its program gets the run.
func (a *apis) take(s *pool.Sandbox, limits runtime.Limits) (*apiServer, error) {
	server, err := a.make(s.Layout, limits)
	if err != nil {
		return nil, err
	}
	server.dispatcher, server.stop, server.served = s.API, s.Stop, s.Served
	s.API.Assign(server.handler)
	return server, nil
}

// make makes an API that is not served yet.
func (a *apis) make(layout runtime.Layout, limits runtime.Limits) (*apiServer, error) {
	if err := os.MkdirAll(placedIn(layout), 0o700); err != nil {
		return nil, run.StorageFault(err)
	}
	calls := a.run.Calls()
	limit := a.run.Handoffs
	limit.ResultBytes = limits.ResultBytes
	server := &apiServer{
		calls: calls, continues: a.saved.Slot.Continues(),
		handler: capsuleapi.NewHandler(a.caller(layout, a.run.Deadline(limits.Timeout)), calls, limit,
			a.machine.logger,
			calls.Mounts()...),
	}
	server.handler.Remember(calls.Keys()...)
	return server, nil
}

// caller describes the run to the broker.
func (a *apis) caller(layout runtime.Layout, deadline time.Time) handoff.Caller {
	caller := a.run.Caller(deadline)
	caller.Outgoing, caller.Incoming, caller.Placed = layout.Outgoing(), layout.Incoming(), placedIn(layout)
	caller.Result = layout.PostedResult()
	if slot := a.saved.Slot; slot.Continues() {
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

// keep keeps the capsule API of a program that goes on while the engine is away: its calls are
// under way, and it makes others. The line to an engine elsewhere has gone with that: calls are
// joined by their keys over the next one.
func (a *apis) keep(server *apiServer) {
	if runtime.IsRemote(a.machine.engine) {
		server.close(runtime.ErrDetach)
		return
	}
	a.kept = server
}

// takeKept returns the API that was kept; nil: none was.
func (a *apis) takeKept() *apiServer {
	kept := a.kept
	a.kept = nil
	return kept
}

// drop ends the API that was kept, if nobody took it.
func (a *apis) drop(cause error) { a.takeKept().close(cause) }

// note records what the program asked in vain, as far as its failure doesn't tell it. It is called when the program
// can't ask any more.
func (a *apis) note(server *apiServer, failure *api.RunError) {
	told := ""
	if failure != nil {
		told = failure.Message
	}
	for _, warning := range server.handler.Warnings(told) {
		a.run.Warn("%s", warning)
	}
}

// apiServer is the capsule API of one attempt, on a socket of its own.
type apiServer struct {
	calls      run.ChildRuns
	handler    *capsuleapi.Handler
	dispatcher *capsuleapi.Dispatcher // of a sandbox that waited; else nil
	continues  bool                   // see pool.ReuseSlot
	stop       context.CancelFunc
	served     chan struct{}
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
