package httpapi

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
	"github.com/agent-on-demand/aod/schemas"
)

const (
	open   traits = 1 << iota // needs no token
	slow                      // has no time limit
	stream                    // lasts as long as the run: slow, and not for HEAD
	cookie                    // of the page: a browser's cookie stands for the token, and its own pages may ask
)

type route struct {
	method, path string
	scope        access.Scope // that a token needs
	handle       echo.HandlerFunc
	traits       traits
}

// public is the scope of a route that any token may ask; with open, who has none may, too.
const public access.Scope = ""

// routes are the routes that are served, by method and pattern.
type routes struct {
	router *echo.Echo
	known  map[string]route
	mounts map[string]Mount // whose the route is; not that of the API's own ones
}

func newRoutes(router *echo.Echo) *routes {
	return &routes{router: router, known: map[string]route{}, mounts: map[string]Mount{}}
}

// serve serves the routes of a table. A GET that isn't a stream also answers HEAD.
func (r *routes) serve(table []route) {
	for _, row := range table {
		r.add(row.method, row)
		if row.method == http.MethodGet && row.traits&stream == 0 {
			r.add(http.MethodHead, row)
		}
	}
}

func (r *routes) add(method string, row route) {
	r.router.Add(method, row.path, row.handle)
	r.known[method+" "+row.path] = row
}

// of returns the request's route, and whether it has one.
func (r *routes) of(c echo.Context) (route, bool) {
	row, ok := r.known[c.Request().Method+" "+c.Path()]
	return row, ok
}

// mountOf returns the mount of the request's route; an empty one where it is the API's own.
func (r *routes) mountOf(c echo.Context) Mount { return r.mounts[c.Request().Method+" "+c.Path()] }

// nameOf is the pattern. The log never shows the path, which the client wrote.
func (r *routes) nameOf(c echo.Context) string {
	if _, ok := r.of(c); ok {
		return c.Path()
	}
	return "(none)"
}

// handlers are the handlers of the API's routes, by noun.
type handlers struct {
	svc       *orchestrator.Service
	runs      runHandlers
	streams   streamHandlers
	news      newsHandlers
	changes   changeHandlers
	messages  messageHandlers
	artifacts artifactHandlers
	questions questionHandlers
	sessions  sessionHandlers
	schedules scheduleHandlers
	units     unitHandlers
	aus       auHandlers
	models    modelHandlers
	server    serverHandlers
	standard  standardHandlers
	signins   signinHandlers
	audit     auditHandlers
	tokens    tokenHandlers
	webhooks  webhookHandlers
	workers   workerHandlers
	hooks     hookHandlers
}

func newHandlers(svc *orchestrator.Service, opts Options) handlers {
	bodies := bodies{spools: svc, payload: opts.PayloadBytes, upload: opts.UploadBytes, logger: opts.Logger}
	waits, streams := waiter{svc.Runs}, streamHandlers{svc.Runs, svc.Feed, svc}
	return handlers{
		svc:       svc,
		runs:      runHandlers{svc, bodies, waits},
		streams:   streams,
		news:      newsHandlers{svc.News},
		changes:   changeHandlers{svc.Files},
		messages:  messageHandlers{svc},
		artifacts: artifactHandlers{svc},
		questions: questionHandlers{svc.Questions, bodies},
		sessions:  sessionHandlers{svc, bodies, waits, streams},
		schedules: scheduleHandlers{svc, bodies, waits},
		units:     unitHandlers{svc, bodies},
		aus:       auHandlers{svc, bodies, waits},
		models:    modelHandlers{svc},
		server:    serverHandlers{svc, schemas.OpenAPI(opts.Version), opts.Metrics, opts.A2A, opts.Reload},
		signins:   signinHandlers{svc.Signins, newAuth(opts), opts.NoPage},
		audit:     auditHandlers{svc.Audit},
		tokens:    tokenHandlers{svc, opts.Tokens, opts.Version},
		webhooks:  webhookHandlers{svc},
		workers:   workerHandlers{svc, opts.Workers},
		hooks:     hookHandlers{svc, opts.Hooks, webhooks.NoKey(), opts.PayloadBytes, opts.Logger},
		standard: standardHandlers{
			svc, bodies, waits, hostFiles{opts.FileRoots, bodies, svc.Units}, opts.ExecuteProblems,
		},
	}
}

// table lists every route except those of the mounts.
func (h handlers) table() []route {
	return slices.Concat(h.ofRuns(), h.ofSessions(), h.ofSchedules(), h.ofWebhooks(), h.ofUnits(), h.ofTokens(),
		h.ofWorkers(), h.ofServer(), h.ofStandard())
}

func (h handlers) ofRuns() []route {
	shown := fileOf(questionID, h.svc.Questions.OpenFile)
	return []route{
		{http.MethodPost, "/v1/runs", access.Run, h.runs.submit, slow},
		{http.MethodGet, "/v1/runs", access.Read, h.runs.list, 0},
		{http.MethodGet, "/v1/runs/counts", access.Read, h.runs.facet, 0},
		{http.MethodGet, "/v1/runs/:id", access.Read, about(runID, h.runs.get), slow},
		{http.MethodDelete, "/v1/runs/:id", access.Admin, about(runID, h.runs.remove), slow},
		{http.MethodGet, "/v1/runs/:id/tree", access.Read, one(runID, h.svc.Runs.Tree), 0},
		{http.MethodGet, "/v1/runs/:id/output", access.Read, about(runID, h.runs.output), 0},
		{http.MethodGet, "/v1/runs/:id/files", access.Read, parts(runID, "files", nameOfFile, h.runs.files), 0},
		{http.MethodGet, "/v1/runs/:id/files/*", access.Read, getFile(h.svc.Files.Open), slow},
		{http.MethodGet, "/v1/runs/:id/logs", access.Read, h.streams.log, stream},
		{http.MethodGet, "/v1/runs/:id/events", access.Read, h.streams.events, stream},
		{http.MethodGet, "/v1/runs/:id/pushes", access.Read, parts(runID, "pushes", idOfPush, h.runs.pushes), 0},
		{http.MethodGet, "/v1/runs/:id/models", access.Read, pages(runID, h.models.calls), 0},
		{http.MethodGet, "/v1/runs/:id/models/:n", access.Read, about(runID, h.models.call), slow},
		{http.MethodGet, "/v1/runs/:id/flow", access.Read, one(runID, h.svc.Flows.Graph), 0},
		{http.MethodGet, "/v1/runs/:id/steps", access.Read, pages(runID, h.runs.steps), 0},
		{http.MethodGet, "/v1/runs/:id/state", access.Read, one(runID, h.svc.Flows.State), 0},
		{http.MethodGet, "/v1/runs/:id/state/files/*", access.Read, getFile(h.svc.Flows.OpenStateFile), slow},
		{http.MethodGet, "/v1/runs/:id/changes", access.Read, about(runID, h.changes.list), slow},
		{http.MethodGet, "/v1/runs/:id/changes.patch", access.Read, about(runID, h.changes.patch), slow},
		{http.MethodGet, "/v1/runs/:id/changes/files/*", access.Read, getFile(h.svc.Files.OpenChanged), slow},
		{http.MethodGet, "/v1/runs/:id/messages", access.Read, pages(runID, h.messages.list), 0},
		{http.MethodPost, "/v1/runs/:id/messages", access.Run, about(runID, h.messages.say), 0},
		{http.MethodGet, "/v1/runs/:id/artifacts", access.Read, pages(runID, h.artifacts.list), 0},
		{http.MethodGet, "/v1/runs/:id/artifacts/:artifact/*", access.Read, about(runID, h.artifacts.file), slow},
		{http.MethodPost, "/v1/runs/:id/cancel", access.Run, about(runID, h.runs.cancel), 0},
		{http.MethodPost, "/v1/runs/:id/rerun", access.Run, about(runID, h.runs.rerun), slow},

		{http.MethodGet, "/v1/questions", access.Questions, h.questions.list, 0},
		{http.MethodGet, "/v1/questions/:id", access.Questions, one(questionID, h.svc.Questions.Get), 0},
		{http.MethodGet, "/v1/questions/:id/files/*", access.Questions, shown, slow},
		{http.MethodPost, "/v1/questions/:id", access.Approve, about(questionID, h.questions.answer), 0},
	}
}

func (h handlers) ofSessions() []route {
	changed, patched := h.sessions.lastChange("changes"), h.sessions.lastChange("changes.patch")
	return []route{
		{http.MethodPost, "/v1/sessions", access.Run, h.sessions.create, slow},
		{http.MethodGet, "/v1/sessions", access.Read, h.sessions.list, 0},
		{http.MethodGet, "/v1/sessions/:id", access.Read, one(sessionID, h.svc.Sessions.Get), 0},
		{http.MethodDelete, "/v1/sessions/:id", access.Run, one(sessionID, h.sessions.end), 0},
		{http.MethodPost, "/v1/sessions/:id/messages", access.Run, about(sessionID, h.sessions.send), slow},
		{http.MethodGet, "/v1/sessions/:id/changes", access.Read, about(changed, h.changes.list), slow},
		{http.MethodGet, "/v1/sessions/:id/changes.patch", access.Read, about(patched, h.changes.patch), slow},
		{http.MethodGet, "/v1/sessions/:id/changes/files/*", access.Read, getFile(h.svc.Sessions.OpenChanged), slow},
	}
}

func (h handlers) ofSchedules() []route {
	pause, resume, occurred := h.schedules.pausing(true), h.schedules.pausing(false), h.schedules.occurrences
	return []route{
		{http.MethodGet, "/v1/schedules", access.Read, h.schedules.list, 0},
		{http.MethodPost, "/v1/schedules/preview", access.Read, h.schedules.preview, 0},
		{http.MethodPut, "/v1/schedules/:name", access.Run, h.schedules.put, slow},
		{http.MethodGet, "/v1/schedules/:name", access.Read, one(scheduleName, h.schedules.get), 0},
		{http.MethodDelete, "/v1/schedules/:name", access.Run, h.schedules.remove, 0},
		{http.MethodPost, "/v1/schedules/:name/pause", access.Run, one(scheduleName, pause), 0},
		{http.MethodPost, "/v1/schedules/:name/resume", access.Run, one(scheduleName, resume), 0},
		{http.MethodPost, "/v1/schedules/:name/run", access.Run, h.schedules.run, slow},
		{http.MethodGet, "/v1/schedules/:name/next", access.Read, h.schedules.next, 0},
		{http.MethodGet, "/v1/schedules/:name/occurrences", access.Read, pages(scheduleName, occurred), 0},
	}
}

func (h handlers) ofWebhooks() []route {
	return []route{
		{http.MethodGet, "/v1/webhooks", access.Read, pages(whole, h.webhooks.list), 0},
		{http.MethodPost, "/v1/webhooks", access.Run, h.webhooks.add, 0},
		{http.MethodGet, "/v1/webhooks/:id", access.Read, one(webhookID, h.webhooks.get), 0},
		{http.MethodDelete, "/v1/webhooks/:id", access.Run, about(webhookID, h.webhooks.remove), 0},
		{http.MethodPost, "/v1/webhooks/:id/rotate", access.Run, about(webhookID, h.webhooks.rotate), 0},
		{http.MethodPost, "/v1/webhooks/:id/test", access.Run, one(webhookID, h.webhooks.test), slow},
		{http.MethodPost, "/v1/hooks/:name", public, h.hooks.start, open},
	}
}

func (h handlers) ofUnits() []route {
	kept := h.svc.Units.Versions
	return []route{
		{http.MethodGet, "/v1/units", access.Read, parts(whole, "units", nameOfUnit, h.units.list), 0},
		{http.MethodGet, "/v1/units/:name", access.Read, about(knownName, h.units.get), slow},
		{http.MethodPost, "/v1/units/:name/disable", access.Admin, one(knownName, h.svc.Units.Disable), 0},
		{http.MethodPost, "/v1/units/:name/enable", access.Admin, one(knownName, h.svc.Units.Enable), 0},
		{http.MethodPut, "/v1/units/:name", access.Upload, h.units.put, slow},
		{http.MethodDelete, "/v1/units/:name", access.Upload, about(knownName, h.units.remove), 0},
		{http.MethodGet, "/v1/units/:name/versions", access.Read, parts(knownName, "versions", versionOf, kept), 0},
		{http.MethodPost, "/v1/units/:name/rollback", access.Upload, about(knownName, h.units.rollback), slow},
		{http.MethodGet, "/v1/units/:name/flow", access.Read, about(knownName, h.units.flow), 0},
		{http.MethodGet, "/v1/units/:name/schema", access.Read, verbatim(h.svc.Units.Schema), 0},
		{http.MethodGet, "/v1/units/:name/card", access.Read, verbatim(h.svc.Units.Card), slow},
		{http.MethodPost, "/v1/au/:name", access.Run, about(knownName, h.aus.run), slow},
	}
}

func (h handlers) ofTokens() []route {
	return []route{
		{http.MethodGet, "/v1/login", public, h.signins.login, open},
		{http.MethodGet, "/v1/whoami", public, h.tokens.whoami, 0},
		{http.MethodGet, "/v1/tokens", access.Admin, h.tokens.list, 0},
		{http.MethodPost, "/v1/tokens", access.Admin, h.tokens.add, 0},
		{http.MethodDelete, "/v1/tokens/:name", access.Admin, about(tokenName, h.tokens.remove), 0},
		{http.MethodPost, "/v1/tokens/:name/rotate", access.Admin, about(tokenName, h.tokens.rotate), 0},
	}
}

func (h handlers) ofWorkers() []route {
	drain, undrain := h.workers.draining(true), h.workers.draining(false)
	return []route{
		{http.MethodGet, "/v1/demand", access.Metrics, h.workers.demand, 0},
		{http.MethodGet, "/v1/workers", access.Metrics, h.workers.list, 0},
		{http.MethodPost, "/v1/workers", access.Admin, h.workers.add, 0},
		{http.MethodDelete, "/v1/workers/:name", access.Admin, about(workerName, h.workers.remove), 0},
		{http.MethodPost, "/v1/workers/:name/drain", access.Admin, one(workerName, drain), 0},
		{http.MethodPost, "/v1/workers/:name/undrain", access.Admin, one(workerName, undrain), 0},
	}
}

func (h handlers) ofServer() []route {
	return []route{
		{http.MethodGet, "/v1/events", access.Read, h.news.follow, stream},
		{http.MethodGet, "/v1/a2a", access.Read, h.server.a2a, 0},
		{http.MethodGet, "/v1/audit", access.Admin, h.audit.list, 0},
		{http.MethodGet, "/v1/models", access.Read, h.models.list, 0},
		{http.MethodGet, "/v1/pool", access.Read, h.server.pool, 0},
		{http.MethodGet, "/v1/stats", access.Read, h.server.stats, 0},
		{http.MethodGet, "/v1/usage", access.Read, h.server.usage, 0},
		{http.MethodGet, "/v1/quotas", access.Read, h.server.quotas, 0},
		{http.MethodPost, "/v1/prune", access.Admin, h.server.prune, slow},
		{http.MethodPost, "/v1/config/reload", access.Admin, h.server.reloadSettings, 0},
		{http.MethodPost, "/v1/signin", access.Read, h.signins.code, 0},

		{http.MethodGet, "/healthz", public, h.server.alive, open},
		{http.MethodGet, "/readyz", public, h.server.ready, open},
		{http.MethodGet, "/metrics", access.Metrics, h.server.metrics(), slow},
		{http.MethodGet, "/openapi.json", public, h.server.openAPI, open},
	}
}

func (h handlers) ofStandard() []route {
	return []route{
		{http.MethodPost, "/execute", access.Run, h.standard.execute, slow},
		{http.MethodGet, "/capsules", access.Read, h.standard.capsules, 0},
		{http.MethodGet, "/capsules/:name/schema", access.Read, verbatim(h.svc.Units.Schema), 0},
		{http.MethodGet, "/health", public, h.standard.health, open},
	}
}
