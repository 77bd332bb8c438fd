package pushes

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

// shelf is a Book in memory.
type shelf struct {
	mu     sync.Mutex
	pushes map[int64]*told
	broken error // of the next Note
}

// told is a push of a shelf, with all that became of its deliveries.
type told struct {
	to      Target
	waiting []int64 // events
	tries   int     // of the first of them
	next    time.Time
	results []Result
	given   bool
	hook    string // whose it is
}

func (s *shelf) Due(_ context.Context, at time.Time, besides Besides, limit int) (due []Due, next time.Time, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range int64(len(s.pushes) + 1) {
		p := s.pushes[id]
		switch {
		case p == nil || len(p.waiting) == 0:
		case p.next.After(at):
			if next.IsZero() || p.next.Before(next) {
				next = p.next
			}
		case len(due) < limit && !slices.Contains(besides.Pushes, id) && !slices.Contains(besides.Hosts, p.to.Host):
			due = append(due, Due{Push: id, Host: p.to.Host})
		}
	}
	return due, next, nil
}

func (s *shelf) First(_ context.Context, push int64) (Delivery, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pushes[push]
	if len(p.waiting) == 0 {
		return Delivery{}, false, nil
	}
	return Delivery{Push: push, Run: "run", To: p.to, Event: api.Event{Seq: p.waiting[0], Type: api.EventState}, At: time.Now(), Tries: p.tries, Webhook: p.hook}, true, nil
}

func (s *shelf) Note(_ context.Context, d Delivery, r Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.broken; err != nil {
		s.broken = nil
		return err
	}
	p := s.pushes[d.Push]
	p.results = append(p.results, r)
	switch {
	case r.Word.settled():
		p.waiting, p.tries = p.waiting[1:], 0
	case r.Next.IsZero():
		p.waiting, p.given = nil, true
	default:
		p.tries, p.next = d.Tries+1, r.Next
	}
	return nil
}

// words returns what became of each try of a push.
func (s *shelf) words(push int64) (words []Word) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.pushes[push].results {
		words = append(words, r.Word)
	}
	return words
}

func (s *shelf) over(push int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pushes[push].waiting) == 0
}

// resolver knows names, of which each has one answer after the other.
type resolver struct {
	mu    sync.Mutex
	known map[string][]string
}

func (r *resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	host = strings.TrimSuffix(host, ".")
	answers := r.known[host]
	if host == "later.example" {
		return nil, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
	}
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(answers) > 1 {
		r.known[host] = answers[1:]
	}
	return []netip.Addr{netip.MustParseAddr(answers[0])}, nil
}

// receiver is a server of the test's own at 127.0.0.1, which remembers what it was told.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

// newReceiver answers by answer, or with 200 where that is nil.
func newReceiver(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	h := &receiver{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		h.requests, h.bodies = append(h.requests, r), append(h.bodies, string(body))
		n := len(h.requests)
		h.mu.Unlock()
		if answer != nil {
			answer(n, w, r)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// heard returns the bodies so far.
func (h *receiver) heard() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.bodies)
}

// at returns the receiver's address below a name.
func (h *receiver) at(host string) Target {
	u, _ := url.Parse(h.URL)
	return Target{URL: "http://" + net.JoinHostPort(host, u.Port()) + "/hook?secret-query", Host: host}
}

// near lets hosts be at 127.0.0.1.
func near(hosts ...string) (all []outside.Exception) {
	for _, host := range hosts {
		all = append(all, outside.Exception{Host: host, Addr: netip.MustParseAddr("127.0.0.1")})
	}
	return all
}

// harness is a Deliverer that goes on, over a shelf.
type harness struct {
	*shelf
	t    *testing.T
	log  *testkit.Log
	news chan struct{}
}

func plain(_ context.Context, run string, e api.Event) ([]byte, string, error) {
	return fmt.Appendf(nil, "canary %s %d", run, e.Seq), "text/canary", nil
}

// ofHook is the token of the targets of webhooks.
const ofHook = "hook"

// newWorld delivers what is waiting for targets, each of so many events.
func newWorld(t *testing.T, opts Options, render Render, events int64, targets ...Target) *harness {
	t.Helper()
	w := &harness{shelf: &shelf{pushes: map[int64]*told{}}, t: t, log: &testkit.Log{}, news: make(chan struct{}, 1)}
	for i, to := range targets {
		p := &told{to: to}
		if to.Token == ofHook {
			p.hook = "hook"
		}
		for seq := range events {
			p.waiting = append(p.waiting, seq+1)
		}
		w.pushes[int64(i+1)] = p
	}
	opts.Logger = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if opts.Delay == 0 {
		opts.Delay = time.Millisecond
	}
	if opts.Timeout == 0 {
		opts.Timeout = time.Minute
	}
	if opts.Door == nil {
		opts.Door = egress.New(egress.Options{Resolver: &resolver{}, Private: near("near.example", "other.example")})
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		New(w, render.Compose, opts).Run(ctx, w.news)
	}()
	t.Cleanup(func() { stop(); <-done })
	return w
}

// await waits until all that waited for a push is over.
func (w *harness) await(push int64) {
	w.t.Helper()
	testkit.Eventually(w.t, fmt.Sprintf("push %d has nothing more to tell", push), func() bool { return w.over(push) })
}

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("the error is %v, want %s", err, kind)
	}
}
