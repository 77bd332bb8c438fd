package handoff

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/agent-on-demand/aod/fault"
)

const maxWaiting = 8 // requests of one sandbox that wait for its run; a program needs one

// Parking is the capsule API of a sandbox that was started ahead of its run. Its program
// asks for the invocation and waits; a run that claims the sandbox answers it. Where the
// program may serve several, one after the other, it asks again after each.
type Parking struct {
	answers
	asked chan struct{} // closed with the first request for the invocation
	ask   func()
	slots chan struct{}

	mu     sync.Mutex
	tenant *tenant       // nil: no run has claimed it
	next   chan struct{} // closed, and another one made, when another run does
}

// tenant is a run that has claimed a sandbox, with its requests.
type tenant struct {
	*Handler
	life     context.Context //nolint:containedctx // of its requests: it ends with Release
	end      context.CancelFunc
	underway sync.WaitGroup
}

// NewParking returns the API of a sandbox that no run has claimed. A nil logger drops what
// it gets.
func NewParking(logger *slog.Logger) *Parking {
	p := &Parking{
		answers: newAnswers(logger),
		asked:   make(chan struct{}),
		slots:   make(chan struct{}, maxWaiting),
		next:    make(chan struct{}),
	}
	p.ask = sync.OnceFunc(func() { close(p.asked) })
	return p
}

// Assign gives the sandbox to a run, whose handler answers from now on. It may be called
// again after Release.
func (p *Parking) Assign(h *Handler) {
	life, end := context.WithCancel(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tenant = &tenant{Handler: h, life: life, end: end}
	close(p.next)
	p.next = make(chan struct{})
}

// Release takes the sandbox from its run and returns when no request of that run's is under
// way any more. Its error is ctx's: then the sandbox must not have another run.
func (p *Parking) Release(ctx context.Context) error {
	p.mu.Lock()
	gone := p.tenant
	p.tenant = nil
	p.mu.Unlock()
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
func (p *Parking) Waiting() <-chan struct{} { return p.asked }

// Live reports whether a request is waiting right now: work must not be given to a program
// that has gone.
func (p *Parking) Live() bool { return len(p.slots) > 0 }

// ServeHTTP answers as the run's handler does, once there is one. Before that a request
// for the invocation waits, for the run or its client's end, and others are refused.
func (p *Parking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if run, _ := p.enter(isInvocation(r)); run != nil {
		run.serve(w, r)
		return
	}
	guard(w)
	p.answering(p.actionFor(r)).ServeHTTP(w, r)
}

// enter returns the run that a request is for, nil where there is none yet; next is closed
// when there is another. A run that has its result is asked for no invocation.
func (p *Parking) enter(invocation bool) (run *tenant, next <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tenant == nil || invocation && p.tenant.over() {
		return nil, p.next
	}
	p.tenant.underway.Add(1)
	return p.tenant, nil
}

// serve answers a request that has entered.
func (t *tenant) serve(w http.ResponseWriter, r *http.Request) {
	defer t.underway.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(t.life, cancel)()
	t.ServeHTTP(w, r.WithContext(ctx))
}

func isInvocation(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/invocation"
}

func (p *Parking) actionFor(r *http.Request) action {
	switch {
	case isInvocation(r):
		return p.wait
	case r.Method == http.MethodGet && r.URL.Path == "/health":
		return p.getHealth
	}
	return unclaimed
}

// errParked is the reason for what an operator need not hear of.
var errParked = errors.New("no run yet")

func unclaimed(http.ResponseWriter, *http.Request) error {
	return fault.Wrap(fault.Unavailable, errParked, "no run has claimed this sandbox yet").
		WithHint("GET /invocation waits for one; ask for everything else after it")
}

// wait holds the request as a lease. One with a body can't be: as long as that hasn't
// come, net/http doesn't see the client go.
func (p *Parking) wait(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength != 0 {
		return fault.New(fault.BadRequest, "the request has a body").WithHint("GET /invocation takes none")
	}
	run, next := p.enter(true)
	if run == nil {
		select {
		case p.slots <- struct{}{}:
		default:
			return fault.Wrap(fault.Unavailable, errParked, "%d requests of this sandbox wait already", maxWaiting).WithHint("one is enough")
		}
		p.ask()
		run = p.await(r.Context(), next)
		<-p.slots
	}
	if run == nil {
		return fault.New(fault.Unavailable, "the server ends before a run has claimed this sandbox").
			WithHint("ask again soon")
	}
	run.serve(w, r)
	return nil
}

// await returns the next run, nil where ctx ends before.
func (p *Parking) await(ctx context.Context, next <-chan struct{}) (run *tenant) {
	for run == nil {
		select {
		case <-next:
			run, next = p.enter(true)
		case <-ctx.Done():
			return nil
		}
	}
	return run
}
