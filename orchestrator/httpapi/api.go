package httpapi

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/schemas"
)

// API serves a Service over HTTP. It is safe for concurrent use.
type API struct {
	svc      *orchestrator.Service
	opts     Options
	guard    guard
	auth     auth
	streams  *httpwire.Streams
	document []byte // OpenAPI
	handler  http.Handler
	routes   map[string]route                      // by method and pattern
	refusals map[string]func(httpwire.Problem) any // of mounts with their own form of refusals
	headers  map[string]string                     // of mounts with a header of their own for the token
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
		streams:  httpwire.NewStreams(maxStreams),
		document: schemas.OpenAPI(opts.Version),
		routes:   map[string]route{},
		refusals: map[string]func(httpwire.Problem) any{},
		headers:  map[string]string{},
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
	scope        access.Scope // that a token needs
	handle       echo.HandlerFunc
	traits       traits
}

// public is the scope of a route that needs no token.
const public access.Scope = ""

// table lists every route except those of the mounts. A GET that is no stream also answers
// HEAD.
func (a *API) table() []route {
	versions := under("versions", a.svc.UnitVersions)
	return slices.Concat(a.schedules(), a.sessions(), []route{
		{http.MethodPost, "/v1/runs", access.Run, a.submit, slow},
		{http.MethodGet, "/v1/runs", access.Read, a.listRuns, 0},
		{http.MethodGet, "/v1/runs/:id", access.Read, one(runID, a.getRun), 0},
		{http.MethodGet, "/v1/runs/:id/output", access.Read, a.getOutput, 0},
		{http.MethodGet, "/v1/runs/:id/files", access.Read, a.listFiles, 0},
		{http.MethodGet, "/v1/runs/:id/files/*", access.Read, getFile(a.svc.OpenFile), slow},
		{http.MethodGet, "/v1/runs/:id/logs", access.Read, a.getLog, stream},
		{http.MethodGet, "/v1/runs/:id/events", access.Read, a.getEvents, stream},
		{http.MethodGet, "/v1/runs/:id/pushes", access.Read, one(runID, under("pushes", a.svc.Pushes)), 0},
		{http.MethodGet, "/v1/runs/:id/models", access.Read, one(runID, under("calls", a.svc.ModelCalls)), 0},
		{http.MethodGet, "/v1/runs/:id/models/:n", access.Read, about(runID, a.getModelCall), slow},
		{http.MethodGet, "/v1/runs/:id/flow", access.Read, one(runID, a.svc.Flow), 0},
		{http.MethodGet, "/v1/runs/:id/steps", access.Read, pages(runID, ofPage, a.steps), 0},
		{http.MethodGet, "/v1/runs/:id/state", access.Read, one(runID, a.svc.FlowState), 0},
		{http.MethodGet, "/v1/runs/:id/state/files/*", access.Read, getFile(a.svc.OpenStateFile), slow},
		{http.MethodGet, "/v1/runs/:id/changes", access.Read, about(runID, a.changes), slow},
		{http.MethodGet, "/v1/runs/:id/changes.patch", access.Read, about(runID, a.patch), slow},
		{http.MethodGet, "/v1/runs/:id/changes/files/*", access.Read, getFile(a.svc.OpenChanged), slow},
		{http.MethodGet, "/v1/runs/:id/messages", access.Read, pages(runID, ofTold, a.svc.Messages), 0},
		{http.MethodPost, "/v1/runs/:id/messages", access.Run, about(runID, a.say), 0},
		{http.MethodGet, "/v1/runs/:id/artifacts", access.Read, pages(runID, ofTold, a.svc.Artifacts), 0},
		{http.MethodGet, "/v1/runs/:id/artifacts/:artifact/*", access.Read, about(runID, a.getArtifact), slow},
		{http.MethodPost, "/v1/runs/:id/cancel", access.Run, about(runID, a.cancelRun), 0},
		{http.MethodPost, "/v1/runs/:id/rerun", access.Run, about(runID, a.rerun), slow},

		{http.MethodGet, "/v1/questions", access.Read, a.listQuestions, 0},
		{http.MethodPost, "/v1/questions/:id", access.Run, a.answerQuestion, 0},

		{http.MethodGet, "/v1/units", access.Read, a.listUnits, 0},
		{http.MethodGet, "/v1/units/:name", access.Read, about(knownName, a.getUnit), slow},
		{http.MethodPost, "/v1/units/:name/disable", access.Admin, one(knownName, a.svc.DisableUnit), 0},
		{http.MethodPost, "/v1/units/:name/enable", access.Admin, one(knownName, a.svc.EnableUnit), 0},
		{http.MethodPut, "/v1/units/:name", access.Upload, a.putUnit, slow},
		{http.MethodDelete, "/v1/units/:name", access.Upload, about(knownName, a.removeUnit), 0},
		{http.MethodGet, "/v1/units/:name/versions", access.Read, one(knownName, versions), 0},
		{http.MethodPost, "/v1/units/:name/rollback", access.Upload, about(knownName, a.rollbackUnit), slow},
		{http.MethodGet, "/v1/units/:name/schema", access.Read, verbatim(a.svc.Schema), 0},
		{http.MethodGet, "/v1/units/:name/card", access.Read, verbatim(a.svc.Card), slow},
		{http.MethodPost, "/v1/au/:name", access.Run, about(knownName, a.runAU), slow},

		{http.MethodGet, "/v1/a2a", access.Read, a.getA2A, 0},
		{http.MethodGet, "/v1/models", access.Read, a.listModels, 0},
		{http.MethodGet, "/v1/pool", access.Read, a.getPool, 0},
		{http.MethodGet, "/v1/stats", access.Read, a.getStats, 0},
		{http.MethodPost, "/v1/prune", access.Admin, a.prune, slow},

		{http.MethodPost, "/execute", access.Run, a.execute, slow},
		{http.MethodGet, "/capsules", access.Read, a.listCapsules, 0},
		{http.MethodGet, "/capsules/:name/schema", access.Read, verbatim(a.svc.Schema), 0},
		{http.MethodGet, "/health", public, a.health, open},

		{http.MethodGet, "/healthz", public, a.alive, open},
		{http.MethodGet, "/readyz", public, a.ready, open},
		{http.MethodGet, "/metrics", access.Read, a.metrics(), slow},
		{http.MethodGet, "/openapi.json", public, a.openAPI, open},
	})
}

// sessions lists the routes of sessions.
func (a *API) sessions() []route {
	patched := a.lastChange("changes.patch")
	return []route{
		{http.MethodPost, "/v1/sessions", access.Run, a.createSession, slow},
		{http.MethodGet, "/v1/sessions", access.Read, a.listSessions, 0},
		{http.MethodGet, "/v1/sessions/:id", access.Read, one(sessionID, a.svc.Session), 0},
		{http.MethodDelete, "/v1/sessions/:id", access.Run, one(sessionID, a.closeSession), 0},
		{http.MethodPost, "/v1/sessions/:id/messages", access.Run, about(sessionID, a.sendMessage), slow},
		{http.MethodGet, "/v1/sessions/:id/changes", access.Read, about(a.lastChange("changes"), a.changes), slow},
		{http.MethodGet, "/v1/sessions/:id/changes.patch", access.Read, about(patched, a.patch), slow},
		{http.MethodGet, "/v1/sessions/:id/changes/files/*", access.Read, getFile(a.svc.SessionChange), slow},
	}
}

// schedules lists the routes of schedules.
func (a *API) schedules() []route {
	return []route{
		{http.MethodGet, "/v1/schedules", access.Read, a.listSchedules, 0},
		{http.MethodPost, "/v1/schedules/preview", access.Read, a.previewTimes, 0},
		{http.MethodPut, "/v1/schedules/:name", access.Run, a.putSchedule, slow},
		{http.MethodGet, "/v1/schedules/:name", access.Read, one(scheduleName, a.getSchedule), 0},
		{http.MethodDelete, "/v1/schedules/:name", access.Run, a.deleteSchedule, 0},
		{http.MethodPost, "/v1/schedules/:name/pause", access.Run, one(scheduleName, a.pausing(true)), 0},
		{http.MethodPost, "/v1/schedules/:name/resume", access.Run, one(scheduleName, a.pausing(false)), 0},
		{http.MethodPost, "/v1/schedules/:name/run", access.Run, a.runSchedule, slow},
		{http.MethodGet, "/v1/schedules/:name/next", access.Read, a.nextTimes, 0},
		{http.MethodGet, "/v1/schedules/:name/occurrences", access.Read, pages(scheduleName, ofPage, a.occurrences), 0},
	}
}

func (a *API) router() *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = a.answer
	e.Use(a.record, a.recovered, a.guarded, a.authorized, a.counted, a.sized, a.bounded)
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
	a.routes[method+" "+r.path] = r
}

// route returns the request's route, and whether it has one.
func (a *API) route(c echo.Context) (route, bool) {
	r, ok := a.routes[c.Request().Method+" "+c.Path()]
	return r, ok
}
