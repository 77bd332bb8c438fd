package capsuleapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
)

const maxWaiting = 8 // requests of one sandbox that wait for its run; a program needs one

// Dispatcher is the capsule API of a sandbox that was started ahead of its run. Its program
// asks for the invocation and waits. When a run claims the sandbox, the run's handler
// answers. A program that serves several runs, one after the other, asks again after each.
type Dispatcher struct {
	responder responder
	asked     chan struct{} // closed with the first request for the invocation
	ask       func()
	slots     chan struct{}
	pace      pace // of requests while there is no run

	mu         sync.Mutex
	assignment *assignment   // nil: no run has claimed it
	next       chan struct{} // closed, and another one made, when another run does
}

// assignment is the run that has claimed a sandbox, and its requests.
type assignment struct {
	handler  *Handler
	life     context.Context //nolint:containedctx // of the requests of a run: it ends with Release
	end      context.CancelFunc
	underway sync.WaitGroup
}

// NewDispatcher returns the API of a sandbox that no run has claimed. A nil logger drops
// what it gets.
func NewDispatcher(logger *slog.Logger) *Dispatcher {
	d := &Dispatcher{
		responder: newResponder(logger),
		asked:     make(chan struct{}),
		slots:     make(chan struct{}, maxWaiting),
		pace:      newPace(),
		next:      make(chan struct{}),
	}
	d.ask = sync.OnceFunc(func() { close(d.asked) })
	return d
}

// Assign gives the sandbox to a run: the run's handler answers from now on. It may be called
// again after Release.
func (d *Dispatcher) Assign(h *Handler) {
	life, end := context.WithCancel(context.Background())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.assignment = &assignment{handler: h, life: life, end: end}
	close(d.next)
	d.next = make(chan struct{})
}

// Release takes the sandbox from its run. It cancels the run's requests, and returns when
// none is under way. The error is ctx's cause: then the sandbox must not get another run.
func (d *Dispatcher) Release(ctx context.Context) error {
	d.mu.Lock()
	gone := d.assignment
	d.assignment = nil
	d.mu.Unlock()
	if gone == nil {
		return nil
	}
	gone.end()
	done := make(chan struct{})
	go func() { // it ends with the server at the latest
		defer close(done)
		gone.underway.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Waiting is closed when the program has asked for the first time.
func (d *Dispatcher) Waiting() <-chan struct{} { return d.asked }

// Live reports whether a request is waiting now. A program without one has gone, and must
// not be given work.
func (d *Dispatcher) Live() bool { return len(d.slots) > 0 }

// ServeHTTP lets the run's handler answer. While there is no run, a request for the
// invocation waits for one, and other requests are refused, but for GET /health.
func (d *Dispatcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if run, _ := d.enter(isInvocation(r)); run != nil {
		run.serve(w, r)
		return
	}
	setSafeHeaders(w)
	d.responder.paced(d.pace, d.responder.handlerOf(d.actionFor(r)).ServeHTTP)(w, r)
}

// enter returns the run that a request is for. It is nil where there is none yet; next is
// closed when there is another. A run that has its result gives no invocation any more.
func (d *Dispatcher) enter(invocation bool) (run *assignment, next <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.assignment == nil || invocation && d.assignment.handler.program.left() {
		return nil, d.next
	}
	d.assignment.underway.Add(1)
	return d.assignment, nil
}

// serve answers a request that has entered.
func (a *assignment) serve(w http.ResponseWriter, r *http.Request) {
	defer a.underway.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.life, cancel)()
	a.handler.ServeHTTP(w, r.WithContext(ctx))
}

func isInvocation(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/invocation"
}

func (d *Dispatcher) actionFor(r *http.Request) action {
	switch {
	case isInvocation(r):
		return d.wait
	case r.Method == http.MethodGet && r.URL.Path == "/health":
		return d.responder.getHealth
	}
	return unclaimed
}

// errUnassigned is the cause of refusals that an operator need not hear of.
var errUnassigned = errors.New("no run yet")

func unclaimed(http.ResponseWriter, *http.Request) error {
	return fault.Wrap(fault.Unavailable, errUnassigned, "no run has claimed this sandbox yet").
		WithHint("GET /invocation waits for one; ask for everything else after it")
}

// wait holds the request until a run claims the sandbox. It refuses a request with a body:
// net/http doesn't see that a client has gone before the whole body has come.
func (d *Dispatcher) wait(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength != 0 {
		return fault.New(fault.BadRequest, "the request has a body").WithHint("GET /invocation takes none")
	}
	run, next := d.enter(true)
	if run == nil {
		select {
		case d.slots <- struct{}{}:
		default:
			return fault.Wrap(fault.Unavailable, errUnassigned, "%d requests of this sandbox wait already", maxWaiting).
				WithHint("one is enough")
		}
		d.ask()
		run = d.await(r.Context(), next)
		<-d.slots
	}
	if run == nil {
		return fault.New(fault.Unavailable, "the server ends before a run has claimed this sandbox").
			WithHint("ask again soon")
	}
	run.serve(w, r)
	return nil
}

// await returns the next run, or nil when ctx ends before there is one.
func (d *Dispatcher) await(ctx context.Context, next <-chan struct{}) (run *assignment) {
	for run == nil {
		select {
		case <-next:
			run, next = d.enter(true)
		case <-ctx.Done():
			return nil
		}
	}
	return run
}
