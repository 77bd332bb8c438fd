package a2a

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	sdklog "github.com/a2aproject/a2a-go/v2/log"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Server offers the units of a Service as agents. It is safe for concurrent use.
type Server struct {
	svc        Service
	opts       Options
	cards      cards
	refusals   refusals
	deliveries *deliveries
	handler    *handler
	pushes     *pushRenderer
	quiet      *slog.Logger // of the SDK
	rpc10      http.Handler
	rpc03      http.Handler
	rest10     http.Handler
	rest03     http.Handler
}

// New returns a server. It starts nothing.
func New(svc Service, opts Options) *Server {
	opts = opts.withDefaults()
	tasks := tasks{svc}
	s := &Server{
		svc: svc, opts: opts, cards: cards{svc, opts}, refusals: refusals{opts.Logger},
		deliveries: &deliveries{svc: svc, logger: opts.Logger, under: map[sent]*delivery{}},
		pushes:     &pushRenderer{tasks: tasks, base: opts.base(opts.HTTP)},
		quiet:      slog.New(slog.DiscardHandler), // its attributes may be what was sent
	}
	s.handler = &handler{
		svc: svc, push: opts.Push, tasks: tasks, cards: s.cards, refusals: s.refusals,
		messages: &messages{
			svc: svc, push: opts.Push, tasks: tasks, rates: &rates{opts: opts}, deliveries: s.deliveries,
			logger: opts.Logger,
		},
	}
	alive := a2asrv.WithTransportKeepAlive(httpwire.Heartbeat)
	s.rpc10, s.rpc03 = a2asrv.NewJSONRPCHandler(s.handler, alive), a2av0.NewJSONRPCHandler(s.handler, alive)
	s.rest10, s.rest03 = a2asrv.NewRESTHandler(s.handler, alive), a2av0.NewRESTHandler(s.handler, alive)
	return s
}

const (
	top      = "/a2a/"
	anyUnit  = "_" // stands for the agent of all units: no unit has such a name
	cardPath = "/.well-known/agent-card.json"
)

// RPCPatterns returns the patterns of JSON-RPC, for http.ServeMux.
func RPCPatterns() []string { return []string{http.MethodPost + " " + top + "{unit}"} }

// RESTPatterns returns the patterns of HTTP+JSON, for http.ServeMux.
func RESTPatterns() []string { return []string{top + "{unit}/"} }

// CardPatterns returns the patterns of the cards, for http.ServeMux.
func CardPatterns() []string {
	return []string{http.MethodGet + " " + cardPath, http.MethodGet + " " + top + "{unit}" + cardPath}
}

// RPCRefusal converts a problem to an error of JSON-RPC, for a server that refuses a request
// before the Server sees it.
func RPCRefusal(p httpwire.Problem) any { return problemRefusal(p).rpcBody(nil) }

// RESTRefusal is RPCRefusal for HTTP+JSON.
func RESTRefusal(p httpwire.Problem) any { return problemRefusal(p).restBody() }

// ServeHTTP implements http.Handler for all patterns.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if path == cardPath {
		s.cards.serve(w, r, s.opts.Root)
		return
	}
	unit, below, _ := strings.Cut(strings.TrimPrefix(path, top), "/")
	if unit == anyUnit {
		unit = ""
	}
	if "/"+below == cardPath {
		s.cards.serve(w, r, unit)
		return
	}
	c := &call{unit: unit, base: s.opts.base(r.Host), trace: httpwire.TraceParent(r)}
	defer c.letGo()
	ctx := sdklog.AttachLogger(withCall(r.Context(), c), s.quiet)
	s.serveCall(w, r.WithContext(ctx), c, below)
}

// serveCall answers a request for a method.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, c *call, below string) {
	var face binding = &rpcBinding{server: s, call: c}
	if below != "" {
		face = &restBinding{server: s, call: c, path: "/" + below}
	}
	var inner http.Handler
	err := httpwire.Catch(func() (err error) { inner, r, err = face.admit(r); return err })
	if err != nil {
		s.write(r.Context(), w, face, s.refusals.of(r.Context(), err))
		return
	}
	before := w.Header().Clone()
	held := &answer{ResponseWriter: w, call: c, rpc: below == ""}
	inner.ServeHTTP(held, r)
	if held.begun && !face.silent() {
		s.deliveries.deliver(r.Context(), c, held.finish)
		return
	}
	restore(w.Header(), before)
	s.conclude(r.Context(), w, c, face, held)
}

// conclude answers where the SDK has told nothing that its client may have.
func (s *Server) conclude(ctx context.Context, w http.ResponseWriter, c *call, b binding, held *answer) {
	reached, failure, _ := c.end()
	switch {
	case failure != nil:
		s.write(ctx, w, b, failure)
	case !reached &&
		(held.status == http.StatusNotFound || held.status == http.StatusMethodNotAllowed || held.status/100 == 3):
		s.write(ctx, w, b, refuse(noMethod, "there is no such method"))
	case !reached:
		s.write(ctx, w, b,
			refuse(badParams, "the parameters can't be read: a part has exactly one of text, raw, data and url, and "+
				"every field its type"))
	case ctx.Err() == nil:
		_ = httpwire.Reply(w, http.StatusOK, httpwire.TypeJSON, b.ours())
	}
}

func (s *Server) write(ctx context.Context, w http.ResponseWriter, b binding, r *refusal) {
	status, body := b.refusal(r)
	if r.retry {
		w.Header().Set("Retry-After", r.retryText())
	}
	if err := httpwire.Reply(w, status, httpwire.TypeJSON, body); err != nil && ctx.Err() == nil {
		s.opts.Logger.DebugContext(ctx, "a2a refusal not sent", "code", r.rule.code)
	}
}

// counted are the states of which a status has a number. Tasks that ask something are among those
// that work, and those that were rejected among those that failed.
var counted = []sdk.TaskState{
	sdk.TaskStateSubmitted, sdk.TaskStateWorking, sdk.TaskStateCompleted, sdk.TaskStateFailed, sdk.TaskStateCanceled,
}

// Status says what is served, and how many tasks there are.
func (s *Server) Status(ctx context.Context) (api.A2AStatus, error) {
	status := api.A2AStatus{
		Units: []string{}, Bindings: s.cards.bindings(), Versions: Versions(), Tasks: map[string]int{},
	}
	units, err := s.svc.Units(ctx)
	if err != nil {
		return status, err
	}
	for _, u := range units {
		if u.Problem == nil && !u.Disabled {
			status.Units = append(status.Units, u.Name)
		}
	}
	for _, state := range counted {
		page, err := s.svc.Changed(ctx, api.ChangedFilter{States: statesOf[state], Limit: 1})
		if err != nil {
			return status, err
		}
		status.Tasks[keyOf(state)] = page.Total
	}
	if s.opts.Push != nil {
		backlog, err := s.opts.Push.PushBacklog(ctx)
		if err != nil {
			return status, err
		}
		status.Push = backlog
	}
	return status, nil
}

// RenderPush makes the body that tells of an event of a run: a stream response of version 1.0. Of
// the end it is the task with all that its run gave. Without a body there is nothing to tell.
func (s *Server) RenderPush(ctx context.Context, run string, event api.Event) (body []byte, kind string, err error) {
	return s.pushes.render(ctx, run, event)
}

func restore(header, before http.Header) {
	clear(header)
	for key, values := range before {
		header[key] = values
	}
}
