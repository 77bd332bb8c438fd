package web

import (
	"cmp"
	"context"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/signins"
)

// Options configure the Page, beside the Service.
type Options struct {
	Version string // of the program
	NoAuth  bool   // nobody has to sign in
	// SignIn signs somebody in with a token. The error is an Unauthorized fault for a wrong one.
	SignIn func(ctx context.Context, token string) (signins.Session, error)
	// People lets people sign in at their issuer, which sends them back to Redirect; nil: a token is needed. Without a
	// Redirect it is the address by which the request came.
	People   *issuer.Issuer
	Redirect string
	Logger   *slog.Logger // nil: nothing is logged
	Workers  Workers      // nil: the server takes none

	UploadBytes  int64 // of a form with files; 0: 256 MiB
	PayloadBytes int64 // of an input's JSON; 0: 1 MiB
}

// Page is the page of a Service. It is safe for concurrent use.
type Page struct {
	svc    *orchestrator.Service
	opts   Options
	assets assets
	texts  *template.Template
	mux    *http.ServeMux
	looks  *http.ServeMux // the pages that are followed
	routes []Route

	hasChats chatsFound
	items    itemCounts
	figured  figured
}

// Route is an address of the page, and what who asks for it needs.
type Route struct {
	Pattern string       // as http.ServeMux has it
	Scope   access.Scope // "": everybody may
}

// handler answers a request. What it returns becomes an error's page.
type handler func(w http.ResponseWriter, r *request) error

// request is a request with what the page knows of it.
type request struct {
	*http.Request
	frame *frame
}

// New makes the Page. The error is one of its own templates.
func New(svc *orchestrator.Service, opts Options) (*Page, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.UploadBytes, opts.PayloadBytes = cmp.Or(opts.UploadBytes, defaultUpload), cmp.Or(opts.PayloadBytes, 1<<20)
	found := newAssets()
	texts, err := parseTemplates(found)
	if err != nil {
		return nil, err
	}
	p := &Page{svc: svc, opts: opts, assets: found, texts: texts, mux: http.NewServeMux(), looks: http.NewServeMux()}
	p.open("GET /ui/static/{name}", p.assets.serve)
	p.open("GET /ui/login", p.showLogin)
	p.open("POST /ui/login", p.login)
	p.open("POST /ui/logout", p.logout)
	p.open("POST /ui/view", p.keepView)
	p.read("GET /ui/live", p.live)
	runs := runPages{p}
	for _, add := range []func(){
		runs.addRuns, runs.addRun, runs.addRunLog, flowPages{runs}.addRunFlow, modelPages{runs}.addRunModels,
		changePages{runs}.addRunChanges, unitPages{p}.addUnits, questionPages{p}.addQuestions, p.addOperations,
		p.addChat, doorPages{p}.addDoors,
	} {
		add()
	}
	p.open("GET /ui", toRuns)
	p.open("GET /ui/", p.nothing)
	return p, nil
}

func (p *Page) open(pattern string, h handler) { p.handle(pattern, "", h) }

func (p *Page) read(pattern string, h handler) { p.handle(pattern, access.Read, h) }

func (p *Page) run(pattern string, h handler) { p.handle(pattern, access.Run, h) }

func (p *Page) handle(pattern string, scope access.Scope, h handler) {
	p.routes = append(p.routes, Route{pattern, scope})
	p.mux.Handle(pattern, p.serve(h))
}

// Routes are the addresses of the page.
func (p *Page) Routes() []Route { return p.routes }

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// policy is what a page may do in a browser: show, and ask its own server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// serve answers with a handler, or with the page of its error.
func (p *Page) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guardHeaders(w.Header())
		req := &request{r, p.newFrame(r)}
		if err := httpwire.Catch(func() error { return h(w, req) }); err != nil {
			problem := httpwire.ProblemOf(err)
			httpwire.NotesOf(r.Context()).Report(err, false)
			p.Refuse(w, r, problem)
		}
	})
}

func guardHeaders(header http.Header) {
	header.Set("Content-Security-Policy", policy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
}

// Refuse answers with the page of a problem. Who isn't signed in is led to where they can, and from there back.
func (p *Page) Refuse(w http.ResponseWriter, r *http.Request, problem httpwire.Problem) {
	p.drain(r, problem)
	guardHeaders(w.Header())
	f := p.newFrame(r)
	if problem.Status == http.StatusUnauthorized && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		redirect(w, f.Up+"login?next="+url.QueryEscape(f.Here))
		return
	}
	f.Title, f.Alone = titleOf(problem.Status), problem.Status == http.StatusUnauthorized
	p.write(w, problem.Status, f, part{"problem", "problem", problem})
}

// drain reads what is still being sent, up to as much again as may be: a browser shows no answer before it has sent
// all.
func (p *Page) drain(r *http.Request, problem httpwire.Problem) {
	if s := problem.Status; r.Method == http.MethodPost && s != http.StatusUnauthorized && s != http.StatusForbidden {
		_, _ = io.CopyN(io.Discard, httpwire.Streamed(r.Context(), r.Body), 2*p.opts.UploadBytes)
	}
}

func titleOf(status int) string {
	switch status {
	case http.StatusNotFound:
		return "There is nothing here"
	case http.StatusForbidden:
		return "You may not see or do this"
	case http.StatusUnauthorized:
		return "Nobody is signed in"
	}
	return "This didn't work"
}

// redirect leads to an address that is relative to the request's, so that it holds below any prefix of a proxy.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func toRuns(w http.ResponseWriter, r *request) error {
	to := "runs"
	if !strings.HasSuffix(r.URL.Path, "/") {
		to = "ui/runs"
	}
	redirect(w, to)
	return nil
}

func (p *Page) nothing(w http.ResponseWriter, r *request) error {
	if r.URL.Path == "/ui/" {
		return toRuns(w, r)
	}
	return fault.New(fault.NotFound, "there is no page at this address").WithHint("the menu leads to all pages")
}
