package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
)

// callee is what a host of runs does for one that calls others.
type callee interface {
	handoff.Runs
	// keys are those of the calls that an earlier process took from the same attempt.
	keys() []string
	// cancel ends the calls that go on. It doesn't wait for that.
	cancel(cause error)
	// end is called when the caller's attempt is over: after it nothing of its calls
	// goes on, unless they outlive this process as the caller does.
	end(cause error)
}

// desk is where one attempt asks for handoffs: the capsule API on a socket of its own.
type desk struct {
	calls   callee
	handler *handoff.Handler
	lot     *handoff.Parking // of a sandbox that waited; else nil
	lasts   bool             // see lease
	stop    context.CancelFunc
	served  chan struct{}
}

// openDesk listens on the socket in the attempt's directory. A container that is there
// already finds it at the same place.
func (o *Orchestrator) openDesk(ctx context.Context, run *Run, layout runtime.Layout, limits runtime.Limits) (*desk, error) {
	d, err := o.newDesk(ctx, run, layout, limits)
	if err != nil {
		return nil, err
	}
	listener, err := layout.Listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("capsule api: %w", err)
	}
	ctx, d.stop = context.WithCancel(ctx)
	d.served = make(chan struct{})
	go func() {
		defer close(d.served)
		if err := d.handler.Serve(ctx, listener); err != nil {
			o.logger.Warn("capsule api ended badly", "run", run.id, about(err))
		}
	}()
	return d, nil
}

// takeDesk makes the API of a waiting sandbox the attempt's: its program hears of the run.
func (o *Orchestrator) takeDesk(ctx context.Context, run *Run, p *parked, limits runtime.Limits) (*desk, error) {
	d, err := o.newDesk(ctx, run, p.layout, limits)
	if err != nil {
		return nil, err
	}
	d.lot, d.stop, d.served = p.api, p.stop, p.served
	p.api.Assign(d.handler)
	return d, nil
}

// newDesk makes a desk that nobody hears of yet.
func (o *Orchestrator) newDesk(ctx context.Context, run *Run, layout runtime.Layout, limits runtime.Limits) (*desk, error) {
	if err := os.MkdirAll(placedIn(layout), 0o700); err != nil {
		return nil, noRoom(err)
	}
	calls := o.newCalls(ctx, run, layout)
	caller := run.caller(layout, run.timeUp(limits))
	caller.Grants = o.grants(run.req.Capsule)
	limit := o.handoffs
	limit.ResultBytes = limits.ResultBytes
	d := &desk{calls: calls, lasts: run.lease.lasts(), handler: handoff.NewHandler(caller, calls, limit, o.logger)}
	d.handler.Remember(calls.keys()...)
	return d, nil
}

// asked reports whether the program has asked for its run.
func (d *desk) asked() bool { return d != nil && d.handler.Asked() }

// done is closed when the attempt has ended and its container goes on; nil where that can't be.
func (d *desk) done() <-chan struct{} {
	if d == nil || !d.lasts {
		return nil
	}
	return d.handler.Posted()
}

// caller describes the run to the broker.
func (r *Run) caller(layout runtime.Layout, deadline time.Time) handoff.Caller {
	caller := handoff.Caller{
		Run: r.id, Root: r.family.root, Parent: r.family.parent, Unit: r.record.Unit,
		Path: r.family.path, Tree: r.family.tree, Deadline: earlier(r.family.deadline, deadline),
		Outgoing: layout.Outgoing(), Incoming: layout.Incoming(), Placed: placedIn(layout),
		Input: r.ready.input.JSON(), Result: layout.Posted(),
	}
	if r.lease.lasts() {
		caller.Reuse = true
		if r.lease.told {
			caller.Remaining = r.lease.Remaining
		}
	}
	if porter := layout.Porter(); porter != nil {
		caller.Porter = porter
	}
	return caller
}

// timeUp is when the attempt's own time is up: that of an adopted one began earlier.
func (r *Run) timeUp(limits runtime.Limits) time.Time {
	if r.record.State == api.Running && r.record.StartedAt != nil {
		return r.record.StartedAt.Add(limits.Timeout)
	}
	return time.Now().Add(limits.Timeout)
}

// placedIn is where the broker remembers which files it brought back.
func placedIn(layout runtime.Layout) string { return filepath.Join(layout.Dir, "placed") }

// until ends the calls with ctx, at the same time as their caller's container.
func (d *desk) until(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { d.calls.cancel(context.Cause(ctx)) })
}

// close ends the API, and with it every call that goes on.
func (d *desk) close(cause error) {
	if d == nil {
		return
	}
	d.stop()
	<-d.served
	d.calls.end(cause)
}

// releaseTime is what requests of the attempt's have to end that are under way.
const releaseTime = 5 * time.Second

// release takes the API from the attempt, and ends every call that goes on. Where it returns
// false it has to be closed.
func (d *desk) release(cause error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	err := d.lot.Release(ctx)
	d.calls.end(cause)
	return err == nil
}

// errCallerEnded is why a call is cancelled whose caller doesn't wait any more.
var errCallerEnded = errors.New("its caller has ended")
