package mcp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Stateless is the first revision without sessions. Each request says who asks.
const Stateless = "2026-07-28"

// Revisions are the revisions of the protocol that a Server speaks, newest first.
func Revisions() []string { return []string{Stateless, "2025-11-25", "2025-06-18", "2025-03-26"} }

// Server offers the units of a Service as tools. It is safe for concurrent use.
type Server struct {
	opts      Options
	sdk       *sdk.Server
	catalogue *catalogue
	calls     *calls
	doors     *doors

	refreshing sync.Mutex
	refreshed  time.Time
}

// New returns a server. It starts nothing.
func New(svc Service, opts Options) *Server {
	opts = opts.withDefaults()
	known := &catalogue{svc: svc, opts: opts, tools: map[string]*tool{}, told: map[string]bool{}}
	results := results{svc: svc, files: runFiles{svc}, out: opts.Out, url: opts.URL, logger: opts.Logger}
	s := &Server{opts: opts, catalogue: known, calls: &calls{
		svc: svc, catalogue: known, arguments: arguments{results.files, opts.Files}, results: results,
		people: people{svc, opts.Logger}, rounds: newRounds(), spans: opts.Spans, logger: opts.Logger,
	}}
	capabilities := &sdk.ServerCapabilities{
		Tools:     &sdk.ToolCapabilities{ListChanged: true},
		Resources: &sdk.ResourceCapabilities{},
	}
	capabilities.AddExtension(tasksExtension, map[string]any{})
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: "aod", Title: "Agent on Demand", Version: opts.Version},
		&sdk.ServerOptions{
			Instructions: instructions, Capabilities: capabilities, SupportedProtocolVersions: Revisions(),
			CompletionHandler: completeNothing,
			SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
				c.TTLMs, c.CacheScope = cacheTime,
					"private"
			},
		})
	s.sdk.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "file", Title: "A file of a result", Description: "A file that a tool made, by the link in its result.",
		URITemplate: "aod://runs/{run}/files/{+name}",
	}, results.readResource)
	if opts.Out != "" {
		s.sdk.AddResourceTemplate(&sdk.ResourceTemplate{
			Name: "delivered", Title: "A file in the directory for results", URITemplate: "file://{+path}",
		}, results.readResource)
	}
	tasks{s.calls}.addTo(s.sdk)
	s.sdk.AddReceivingMiddleware(s.guarded)
	s.doors = newDoors(s.sdk, opts)
	return s
}

// completeNothing answers clients that ask for values whatever a server knows: what a link holds is not guessed.
func completeNothing(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}, nil
}

const (
	cacheTime = 5000 // milliseconds for which a list may be kept

	instructions = "Each tool runs a sealed program and answers with its output. A result may link to files: " +
		"read them as resources, or give their URIs (aod://…) to fields of other tools that take a file."
)

// Close ends all sessions.
func (s *Server) Close() error {
	s.doors.visits.close()
	var errs []error
	for session := range s.sdk.Sessions() {
		errs = append(errs, session.Close())
	}
	return errors.Join(errs...)
}

// guarded is around every request: it has the tools of the moment, and keeps inner errors and
// panics to ourselves.
func (s *Server) guarded(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		ctx, stop := living(ctx)
		defer stop()
		err = httpwire.Catch(func() error {
			if err := s.prepare(ctx, method, req); err != nil {
				return err
			}
			var err error
			if call, ok := req.(*sdk.CallToolRequest); ok {
				result, err = s.calls.callTool(ctx, call)
			} else {
				result, err = next(ctx, method, req)
			}
			return err
		})
		if err != nil {
			return nil, s.public(ctx, method, err)
		}
		return result, nil
	}
}

// listAge is how old a list of tools may be. Looking at some hundred directories takes longer
// than all else of a request; clients may keep a list for longer.
const listAge = time.Second

// prepare refreshes the tools where a request is about all of them, or about one that isn't
// known.
func (s *Server) prepare(ctx context.Context, method string, req sdk.Request) error {
	switch call, isCall := req.(*sdk.CallToolRequest); {
	case isCall && s.catalogue.find(call.Params.Name) == nil:
		return s.Refresh(ctx)
	case method == "tools/list":
		return s.refresh(ctx, listAge)
	}
	return nil
}

// Refresh looks for changes of the units, and tells the clients of them.
func (s *Server) Refresh(ctx context.Context) error { return s.refresh(ctx, 0) }

// refresh is Refresh, unless the last one is no older than that.
func (s *Server) refresh(ctx context.Context, age time.Duration) error {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	began := time.Now()
	if began.Sub(s.refreshed) < age {
		return nil
	}
	changed, gone, err := s.catalogue.refresh(ctx)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		s.sdk.RemoveTools(gone...)
	}
	for _, t := range changed {
		s.sdk.AddTool(t.Tool, unreached)
	}
	s.refreshed = began
	return nil
}

// unreached is the handler of the SDK's list of tools: calls are taken before it.
func unreached(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return nil, errors.New("a call has passed its handler")
}

// watchPause is how often the units are looked at for changes.
const watchPause = 2 * time.Second

// Watch tells clients of changes of the units, until ctx ends.
func (s *Server) Watch(ctx context.Context) {
	s.look(ctx) // the first time tells of names that collide
	watch(ctx, func() {
		if s.isHeard() {
			s.look(ctx)
		}
	})
}

// watch looks again and again, until ctx ends.
func watch(ctx context.Context, look func()) {
	for pause.For(ctx, watchPause) == nil {
		look()
	}
}

// look is Refresh whose error is logged.
func (s *Server) look(ctx context.Context) {
	if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
		s.opts.Logger.DebugContext(ctx, "units not listed", fault.LogAttr(err))
	}
}

// sessions counts those over HTTP that go on.
func (s *Server) sessions() int { return s.doors.visits.open() }

// isHeard reports whether a client would hear of changes.
func (s *Server) isHeard() bool {
	for range s.sdk.Sessions() {
		return true
	}
	return false
}

// public is what a client may know of an error: the protocol's own ones as they are, of ours
// the message, of others nothing.
func (s *Server) public(ctx context.Context, method string, err error) error {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		return err
	}
	var known *fault.Error
	if !errors.As(err, &known) && ctx.Err() == nil {
		s.opts.Logger.ErrorContext(ctx, "mcp request failed", "method", method, fault.LogAttr(err))
	}
	if fault.Is(err, fault.Input) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.BadRequest) ||
		fault.Is(err, fault.TooLarge) {
		return invalid("%s", fault.Public(err).Msg)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server could not do this"}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.doors.ServeHTTP(w, r) }
