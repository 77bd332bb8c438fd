package mcp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// View returns a text that tells apart what clients may know of, by the context of a request, and what has another
// context see the same.
type View func(ctx context.Context) (key string, in func(context.Context) context.Context)

// Views serve clients over HTTP of whom not all may know of the same units: those who may have a Server in common,
// whose tools are these units. They are safe for concurrent use.
type Views struct {
	svc    Service
	viewOf View
	opts   Options

	mu    sync.Mutex
	byKey map[string]*view
}

// view is the Server of those who may know of the same units.
type view struct {
	server *Server
	in     func(context.Context) context.Context
	busy   int       // requests that go on
	used   time.Time // when the last one ended
}

// maxViews is how many there are at once where clients leave it at that: a further one takes the place of one without
// sessions.
const maxViews = 200

// NewViews returns Views. It starts nothing.
func NewViews(svc Service, viewOf View, opts Options) *Views {
	return &Views{svc: svc, viewOf: viewOf, opts: opts, byKey: map[string]*view{}}
}

// ServeHTTP implements http.Handler.
func (v *Views) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own := v.enter(r.Context())
	defer v.leave(own)
	own.server.ServeHTTP(w, r)
}

// enter returns the view of a context's client, for a request that begins.
func (v *Views) enter(ctx context.Context) *view {
	key, in := v.viewOf(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	own := v.byKey[key]
	if own == nil {
		v.makeRoom()
		own = &view{server: New(v.svc, v.opts), in: in}
		v.byKey[key] = own
	}
	own.busy++
	return own
}

func (v *Views) leave(own *view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	own.busy--
	own.used = time.Now()
}

// makeRoom forgets the view that wasn't used for longest, where there are too many and it has no session.
func (v *Views) makeRoom() {
	if len(v.byKey) < maxViews {
		return
	}
	oldest := ""
	for key, known := range v.byKey {
		free := known.busy == 0 && !known.server.isHeard()
		if free && (oldest == "" || known.used.Before(v.byKey[oldest].used)) {
			oldest = key
		}
	}
	delete(v.byKey, oldest)
}

// all are the views that there are.
func (v *Views) all() (views []*view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, known := range v.byKey {
		views = append(views, known)
	}
	return views
}

// Collectors returns the metrics of all clients.
func (v *Views) Collectors() []prometheus.Collector {
	return []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "aod_mcp_sessions_open", Help: "Sessions of MCP clients over HTTP that are open.",
	}, func() float64 { return float64(v.sessions()) })}
}

// sessions counts those that go on.
func (v *Views) sessions() (n int) {
	for _, known := range v.all() {
		n += known.server.sessions()
	}
	return n
}

// Watch tells clients of changes of the units, until ctx ends. Of names that collide among those that ctx may know of
// it warns at once.
func (v *Views) Watch(ctx context.Context) {
	own := v.enter(ctx)
	defer v.leave(own)
	own.server.look(ctx)
	watch(ctx, func() {
		for _, known := range v.all() {
			if known.server.isHeard() {
				known.server.look(known.in(ctx))
			}
		}
	})
}

// Close ends all sessions.
func (v *Views) Close() error {
	var errs []error
	for _, known := range v.all() {
		errs = append(errs, known.server.Close())
	}
	return errors.Join(errs...)
}
