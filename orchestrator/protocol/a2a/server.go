package a2a

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	sdklog "github.com/a2aproject/a2a-go/v2/log"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Server offers the units of a Service as agents. It is safe for concurrent use.
type Server struct {
	svc        Service
	opts       Options
	rates      *rates
	deliveries deliveries
	quiet      *slog.Logger // of the SDK
	rpc10      http.Handler
	rpc03      http.Handler
	rest10     http.Handler
	rest03     http.Handler
	handler    handler
	passed     passed // tasks of which pushes tell
}

// New returns a server. It starts nothing.
func New(svc Service, opts Options) *Server {
	s := &Server{svc: svc, opts: opts.withDefaults()}
	s.rates = newRates(s.opts.Rate)
	s.quiet = slog.New(slog.DiscardHandler) // its attributes may be what was sent
	s.handler = handler{s}
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
		s.serveCard(w, r, s.opts.Root)
		return
	}
	unit, below, _ := strings.Cut(strings.TrimPrefix(path, top), "/")
	if unit == anyUnit {
		unit = ""
	}
	if "/"+below == cardPath {
		s.serveCard(w, r, unit)
		return
	}
	c := &call{unit: unit, base: s.base(r), trace: httpwire.TraceParent(r)}
	defer c.letGo()
	ctx := sdklog.AttachLogger(withCall(r.Context(), c), s.quiet)
	s.serveCall(w, r.WithContext(ctx), c, below)
}

// serveCall answers a request for a method.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, c *call, below string) {
	var entrance entrance = &rpcEntrance{server: s, call: c}
	if below != "" {
		entrance = &restEntrance{server: s, call: c, path: "/" + below}
	}
	var inner http.Handler
	err := httpwire.Catch(func() (err error) { inner, r, err = entrance.admit(r); return err })
	if err != nil {
		s.write(r.Context(), w, entrance, s.refused(r.Context(), err))
		return
	}
	before := w.Header().Clone()
	held := &answer{ResponseWriter: w, call: c}
	inner.ServeHTTP(held, r)
	if held.begun && !entrance.silent() {
		s.deliver(r.Context(), c, held.finish)
		return
	}
	restore(w.Header(), before)
	s.conclude(r.Context(), w, c, entrance, held)
}

// conclude answers where the SDK has told nothing that its client may have.
func (s *Server) conclude(ctx context.Context, w http.ResponseWriter, c *call, e entrance, held *answer) {
	reached, failure, _ := c.end()
	switch {
	case failure != nil:
		s.write(ctx, w, e, failure)
	case !reached &&
		(held.status == http.StatusNotFound || held.status == http.StatusMethodNotAllowed || held.status/100 == 3):
		s.write(ctx, w, e, refuse(noMethod, "there is no such method"))
	case !reached:
		s.write(ctx, w, e,
			refuse(badParams, "the parameters can't be read: a part has exactly one of text, raw, data and url, and "+
				"every field its type"))
	case ctx.Err() == nil:
		_ = httpwire.Reply(w, http.StatusOK, httpwire.TypeJSON, e.empty())
	}
}

func (s *Server) write(ctx context.Context, w http.ResponseWriter, e entrance, r *refusal) {
	status, body := e.refusal(r)
	if r.retry {
		w.Header().Set("Retry-After", httpwire.RetryAfter)
	}
	reply := func() error { return httpwire.Reply(w, status, httpwire.TypeJSON, body) }
	if status == http.StatusOK && e.asEvent() {
		reply = func() error { return replyEvent(w, body) }
	}
	if err := reply(); err != nil && ctx.Err() == nil {
		s.opts.Logger.DebugContext(ctx, "a2a refusal not sent", "code", r.rule.code)
	}
}

// replyEvent answers with a stream of one event.
func replyEvent(w http.ResponseWriter, body any) error {
	raw, err := httpwire.Encode(body)
	if err != nil {
		return err
	}
	httpwire.BeginStream(w, httpwire.TypeEvents)
	_, err = fmt.Fprintf(w, "data: %s\n\n", bytes.TrimSpace(raw))
	return err
}

// deliver sends an answer, and notes that the client has heard what became of its message.
func (s *Server) deliver(ctx context.Context, c *call, send func() error) {
	_, _, heard := c.end()
	end := s.deliveries.begin(heard.resend)
	defer end()
	if send() == nil {
		s.note(ctx, heard)
	}
}

// note notes what a client has heard. A server that dies before is asked again by its clients.
func (s *Server) note(ctx context.Context, heard reception) {
	if heard.run == "" {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.svc.Delivered(ctx, heard.run, heard.resend); err != nil {
		s.opts.Logger.WarnContext(ctx, "delivery not noted", "run", heard.run, fault.LogAttr(err))
	}
}

// base is the beginning of the server's addresses.
func (s *Server) base(r *http.Request) string {
	if s.opts.PublicURL != "" {
		return s.opts.PublicURL
	}
	return "http://" + r.Host
}

func restore(header, before http.Header) {
	clear(header)
	for key, values := range before {
		header[key] = values
	}
}
