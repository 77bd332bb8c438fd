package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/schemas"
)

// API serves a Service over HTTP. It is safe for concurrent use.
type API struct {
	svc      *orchestrator.Service
	opts     Options
	guard    guard
	auth     auth
	document []byte // OpenAPI
	handler  http.Handler
	routes   map[string]traits                     // by method and pattern
	refusals map[string]func(httpwire.Problem) any // of mounts with their own form of refusals
}

// New makes the API and starts nothing. The error is an Input fault about opts.
func New(svc *orchestrator.Service, opts Options) (*API, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	a := &API{
		svc:      svc,
		opts:     opts,
		guard:    newGuard(opts),
		auth:     newAuth(opts),
		document: schemas.OpenAPI(opts.Version),
		routes:   map[string]traits{},
		refusals: map[string]func(httpwire.Problem) any{},
	}
	a.handler = paced(a.router())
	return a, nil
}

// Handler returns the handler of every route. Streams that it serves end with their
// requests only; Serve ends them with the server.
func (a *API) Handler() http.Handler { return a.handler }

// traits are the special properties of a route.
type traits uint8

const (
	open   traits = 1 << iota // needs no token
	slow                      // has no time limit
	stream                    // lasts as long as the run: slow, and not for HEAD
)

type route struct {
	method, path string
	handle       echo.HandlerFunc
	traits       traits
}

// table lists every route except those of the mounts. A GET that is no stream also answers
// HEAD.
func (a *API) table() []route {
	return []route{
		{http.MethodPost, "/v1/runs", a.submit, slow},
		{http.MethodGet, "/v1/runs", a.listRuns, 0},
		{http.MethodGet, "/v1/runs/:id", a.getRun, 0},
		{http.MethodGet, "/v1/runs/:id/output", a.getOutput, 0},
		{http.MethodGet, "/v1/runs/:id/files", a.listFiles, 0},
		{http.MethodGet, "/v1/runs/:id/files/*", getFile(a.svc.OpenFile), slow},
		{http.MethodGet, "/v1/runs/:id/logs", a.getLog, stream},
		{http.MethodGet, "/v1/runs/:id/events", a.getEvents, stream},
		{http.MethodGet, "/v1/runs/:id/models", a.listModelCalls, 0},
		{http.MethodGet, "/v1/runs/:id/models/:n", a.getModelCall, slow},
		{http.MethodGet, "/v1/runs/:id/flow", a.getFlow, 0},
		{http.MethodGet, "/v1/runs/:id/steps", a.listSteps, 0},
		{http.MethodGet, "/v1/runs/:id/state", a.getState, 0},
		{http.MethodGet, "/v1/runs/:id/state/files/*", getFile(a.svc.OpenStateFile), slow},
		{http.MethodPost, "/v1/runs/:id/cancel", a.cancelRun, 0},
		{http.MethodPost, "/v1/runs/:id/rerun", a.rerun, slow},

		{http.MethodGet, "/v1/questions", a.listQuestions, 0},
		{http.MethodPost, "/v1/questions/:id", a.answerQuestion, 0},

		{http.MethodGet, "/v1/units", a.listUnits, 0},
		{http.MethodGet, "/v1/units/:name", a.getUnit, 0},
		{http.MethodPut, "/v1/units/:name", a.putUnit, slow},
		{http.MethodGet, "/v1/units/:name/schema", a.getSchema, 0},
		{http.MethodGet, "/v1/units/:name/card", a.getCard, slow},
		{http.MethodPost, "/v1/au/:name", a.runAU, slow},

		{http.MethodGet, "/v1/models", a.listModels, 0},
		{http.MethodGet, "/v1/pool", a.getPool, 0},
		{http.MethodGet, "/v1/stats", a.getStats, 0},
		{http.MethodPost, "/v1/prune", a.prune, slow},

		{http.MethodPost, "/execute", a.execute, slow},
		{http.MethodGet, "/capsules", a.listCapsules, 0},
		{http.MethodGet, "/capsules/:name/schema", a.getSchema, 0},
		{http.MethodGet, "/health", a.health, open},

		{http.MethodGet, "/healthz", a.alive, open},
		{http.MethodGet, "/readyz", a.ready, open},
		{http.MethodGet, "/metrics", a.metrics(), slow},
		{http.MethodGet, "/openapi.json", a.openAPI, open},
	}
}

func (a *API) router() *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = a.answer
	e.Use(a.record, a.recovered, a.guarded, a.authorized, a.sized, a.bounded)
	for _, r := range a.table() {
		a.add(e, r.method, r)
		if r.method == http.MethodGet && r.traits&stream == 0 {
			a.add(e, http.MethodHead, r)
		}
	}
	for _, m := range a.opts.Mounts {
		a.mount(e, m)
	}
	return e
}

func (a *API) add(e *echo.Echo, method string, r route) {
	e.Add(method, r.path, r.handle)
	a.routes[method+" "+r.path] = r.traits
}

// traits returns the traits of the request's route, and whether it has a route.
func (a *API) traits(c echo.Context) (traits, bool) {
	t, ok := a.routes[c.Request().Method+" "+c.Path()]
	return t, ok
}
