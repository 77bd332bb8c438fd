package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
)

// API serves a Service over HTTP. It is safe for concurrent use.
type API struct {
	opts    Options
	routes  *routes
	auth    authorizer
	refused refusals
	handler http.Handler
}

// New makes the API and starts nothing. The error is an Input fault about opts.
func New(svc *orchestrator.Service, opts Options) (*API, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	e := echo.New()
	known := newRoutes(e)
	auth := authorizer{
		tokens: newAuth(opts), signins: svc.Signins, rates: &httpwire.Rates{},
		streams: httpwire.NewStreams(maxStreams), memory: opts.Memory,
		routes: known, logger: opts.Logger,
	}
	log, bounds := requestLog{opts.Logger, known}, bounds{known, opts.Memory, opts.UploadBytes}
	e.HTTPErrorHandler = answerer{log, known}.answer
	refused, figures := refusals{svc.Audit, known}, newFigures(known, auth.streams)
	opts.Metrics = figures.beside(opts.Metrics, opts.Collectors)
	e.Use(figures.counted, log.record, refused.counted, recovered, newGuard(opts, known).guarded, auth.authorized,
		bounds.counted, bounds.sized, bounds.bounded)
	known.serve(newHandlers(svc, opts).table())
	for _, m := range opts.Mounts {
		known.mount(m, log)
	}
	if opts.NoPage {
		known.mount(noPage(), log)
	}
	return &API{opts: opts, routes: known, auth: auth, refused: refused, handler: paced(e)}, nil
}

// Handler returns the handler of every route. Streams that it serves end with their
// requests only; Serve ends them with the server.
func (a *API) Handler() http.Handler { return a.handler }

// Authorize is for a protocol that doesn't come over HTTP: it returns a context that knows whose a
// token is, if that may run units, for one of its teams or, with "", for all of them. ctx has to
// end with the call. The context ends before it, with a fault as its cause, when the token is
// revoked. The errors are Unauthorized and Forbidden faults.
func (a *API) Authorize(ctx context.Context, token, team string) (context.Context, error) {
	admitted, err := a.auth.call(ctx, token, team)
	if err != nil {
		if !fault.Is(err, fault.Unauthorized) {
			ctx = a.auth.bearer(ctx, token)
		}
		a.refused.tell(ctx, "grpc", err)
	}
	return admitted, err
}

const (
	headerBytes  = 64 << 10
	shutdownTime = 10 * time.Second
)

// Serve serves on the listener until ctx ends, and closes it. Then streams and waits are
// ended, other requests get 10 seconds, and Serve returns nil. The runs go on: they are the
// Service's. Serve may be called for several listeners.
func (a *API) Serve(ctx context.Context, listener net.Listener) error {
	server := httpwire.Server{
		Name: "http", Handler: a.handler, HeaderBytes: headerBytes, Drain: shutdownTime,
		ErrorLog: a.opts.Logger, ErrorLevel: slog.LevelWarn, Requests: httpwire.Outliving,
	}
	return server.Serve(ctx, listener)
}

// Options configure the API, beside the Service.
type Options struct {
	Token  string         // that a request must carry, with every scope; "" only with NoAuth
	Tokens *access.Tokens // further ones, each with its scopes; nil: none
	People *issuer.Issuer // whose tokens count, too; nil: nobody's
	NoAuth bool           // every client may do everything

	Workers Workers // machines that take runs; nil: the server takes none

	Listen  string   // HOST:PORT, which a request's Host header may name
	Hosts   []string // further names that it may have: NAME with any port, or NAME:PORT
	Origins []string // of web pages that may call: SCHEME://HOST[:PORT]; none by default

	UploadBytes  int64 // of one request as a whole; 0 is 256 MiB
	PayloadBytes int64 // of an input's JSON; 0 is contract.DefaultMaxBytes

	Memory *bytegate.Gate // of what all requests hold in memory; nil: one of the API's own

	FileRoots []string // directories of this host that POST /execute may take files from
	// ExecuteProblems has POST /execute answer what is wrong with a run with problems and
	// their status, where the AOD standard says 200 and "success": false.
	ExecuteProblems bool

	// Reload reads the settings again, and has those hold that can; nil: there are none to read.
	Reload func(context.Context) (api.Reload, error)
	// A2A tells what is offered to clients of A2A; nil: it is off.
	A2A func(context.Context) (api.A2AStatus, error)

	Hooks func(name string) (Hook, bool) // what messages of others start runs; nil: none do

	Mounts []Mount // further protocols beside the API's own addresses
	NoPage bool    // none of them is the page

	Logger  *slog.Logger        // nil: nothing is logged
	Version string              // of the program, for the OpenAPI document; may be empty
	Metrics prometheus.Gatherer // for GET /metrics, beside the API's own; nil: nothing
	// Collectors are the metrics of the protocols of Mounts.
	Collectors []prometheus.Collector
}

const defaultUploadBytes = 256 << 20

func (o Options) check() error {
	switch {
	case o.Token == "" && !o.NoAuth:
		return fault.New(fault.Input, "a server without a token would obey anybody").
			WithHint("give it a token, or say that it needs none")
	case o.Token != "" && o.NoAuth:
		return fault.New(fault.Input, "a token is given and none is asked for").WithHint("choose one of the two")
	case o.UploadBytes < 0 || o.PayloadBytes < 0:
		return fault.New(fault.Input, "a limit is below zero")
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.UploadBytes = cmp.Or(o.UploadBytes, defaultUploadBytes)
	if o.Memory == nil {
		o.Memory = bytegate.New(0)
	}
	o.PayloadBytes = cmp.Or(o.PayloadBytes, contract.DefaultMaxBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	return o
}

// traits are the special properties of a route.
type traits uint8
