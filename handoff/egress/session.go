package egress

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
)

// Terms are what one run may reach.
type Terms struct {
	Unit    string
	Allowed outside.List // that its agent.yaml lists
	Bounded bool         // Cap holds
	Cap     outside.List // the operator's
	Tally   *Tally
	Tell    func(api.EgressEvent) // nil: nobody hears of it
}

// Session answers the requests of one run for hosts. It is an http.Handler for CONNECT, and for
// requests whose URL is absolute. Its ResponseWriter must allow to be hijacked.
type Session struct {
	door  *Door
	terms Terms
	slots chan struct{}

	life     context.Context //nolint:containedctx // of all that the run opened: Close ends it
	end      context.CancelFunc
	mu       sync.Mutex
	closed   bool
	underway sync.WaitGroup
}

// Session returns what answers a run under its terms. Close must be called at the run's end.
func (d *Door) Session(terms Terms) *Session {
	if terms.Tally == nil {
		terms.Tally = new(Tally)
	}
	if terms.Tell == nil {
		terms.Tell = func(api.EgressEvent) {}
	}
	s := &Session{door: d, terms: terms, slots: make(chan struct{}, d.opts.Tunnels)}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends every tunnel and request of the run, and returns when they have ended.
func (s *Session) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.underway.Wait()
	return nil
}

var errOver = fault.New(fault.Unavailable, "the run is over")

// ServeHTTP opens a tunnel, or passes a request on, if the run's terms allow it.
func (s *Session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		answer(w, r, errOver)
		return
	}
	defer s.underway.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	if err := s.serve(w, r.WithContext(ctx)); err != nil {
		answer(w, r, err)
	}
}

func (s *Session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.underway.Add(1)
	}
	return !s.closed
}

// serve returns why nothing was opened.
func (s *Session) serve(w http.ResponseWriter, r *http.Request) error {
	to, err := requested(r)
	if err != nil {
		s.door.refused.Add(1)
		return err
	}
	way, err := s.admit(to)
	if err != nil {
		return err
	}
	defer func() { <-s.slots }()
	if to.plain {
		return way.pass(w, r)
	}
	return way.open(w, r)
}

// requested returns what a request is for.
func requested(r *http.Request) (target, error) {
	switch {
	case r.Method == http.MethodConnect:
		return targetOf(r.URL.Host, outside.PortTLS)
	case r.URL.Scheme == "http":
		to, err := targetOf(r.URL.Host, outside.PortPlain)
		to.plain = true
		return to, err
	}
	return target{}, fault.New(fault.BadRequest, "a proxy takes CONNECT host:port, and requests of http:// addresses").
		WithHint("https:// addresses go through CONNECT")
}

// admit checks a target against the list, and takes one of the places for tunnels.
func (s *Session) admit(to target) (tunnel, error) {
	rule := outside.Rule{Host: to.host, Port: to.port, Plain: to.plain}
	allowed := s.terms.Allowed.Covers(rule) && (!s.terms.Bounded || s.terms.Cap.Covers(rule))
	way := tunnel{session: s, to: to, count: s.terms.Tally.of(to.host, int(to.port), allowed)}
	if !allowed {
		return way, way.refused(s.terms.notListed(to))
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return way, way.refused(refuse(RuleTunnels,
			fault.New(fault.Busy, "this run has %d tunnels open already", cap(s.slots)).
				WithHint("close some of them")))
	}
	if way.count.told.CompareAndSwap(false, true) {
		s.tell(way.count, "")
	}
	return way, nil
}

func (s *Session) tell(c *counter, refused string) {
	if c.host != Others {
		s.terms.Tell(api.EgressEvent{Host: c.host, Port: c.port, Refused: refused})
	}
}

// refused counts a refusal, and tells of the first of a host. It returns its error.
func (t tunnel) refused(err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		return err
	}
	t.count.refused.Add(1)
	t.session.door.refused.Add(1)
	if r.rule != RuleTunnels && t.count.toldRefused.CompareAndSwap(false, true) {
		t.session.tell(t.count, r.rule)
	}
	return err
}
