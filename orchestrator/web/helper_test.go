package web_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/feature/artifacts"
	"github.com/agent-on-demand/aod/orchestrator/feature/mcpsessions"
	"github.com/agent-on-demand/aod/orchestrator/feature/messages"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
	"github.com/agent-on-demand/aod/orchestrator/httpapi"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	kindflow "github.com/agent-on-demand/aod/orchestrator/kind/flow"
	"github.com/agent-on-demand/aod/orchestrator/kind/remote"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/signins"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/web"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

const token = "s3cret-token"

// chatter is a line of a log.
const chatter = "level=info msg=\"row was read\" table=ferries took=12ms"

// unitFiles are the units that a server has, by their paths.
var unitFiles = map[string]string{
	"actor/Dockerfile": "FROM base:1\nCMD [\"actor\"]\n",
	"actor/tools.yaml": "[]\n",
	"actor/agent.yaml": "name: actor\ndescription: does what it is told\n",
	"actor/schema.json": `{
  "input": {"type": "object", "additionalProperties": false, "properties": {
    "do": {"type": "string"}, "say": {"type": "string"}, "doc": {"type": "string", "format": "file_path"}
  }},
  "output": {"type": "object", "properties": {
    "n": {"type": "int"}, "got": {"type": "string"}, "report": {"type": "string", "format": "file_path"}
  }}
}
`,
}

// page is the page of a Service over a fake engine, served on a real connection, and a browser without script.
type page struct {
	t       testing.TB
	url     string // of the server
	svc     *orchestrator.Service
	opts    web.Options
	web     *web.Page
	api     *httpapi.API
	tokens  *access.Tokens
	file    string // in which they are
	log     *testkit.Log
	client  *http.Client
	release chan struct{} // lets programs that wait go on: one by what is sent, all when it is closed
	streams atomic.Int64  // that browsers have now
	fleet   *fleet

	engine  *enginetest.Fake
	home    string
	sources string
	stop    context.CancelFunc // ends Serve
	served  chan error
}

// newPage serves the page. Nobody has signed in. Files are of units beside the actor, by their paths.
func newPage(t testing.TB, files ...map[string]string) *page {
	t.Helper()
	return newPageFor(t, web.Options{}, files...)
}

// newPageFor is newPage with what people sign in by.
func newPageFor(t testing.TB, opts web.Options, files ...map[string]string) *page {
	t.Helper()
	p := &page{t: t, opts: opts, fleet: newFleet(), log: &testkit.Log{}, sources: t.TempDir(), home: filepath.Join(t.TempDir(), "home"), release: make(chan struct{})}
	for _, some := range append(files, unitFiles) {
		for name, content := range some {
			p.write(name, content)
		}
	}
	p.file = filepath.Join(t.TempDir(), "tokens.json")
	p.tokens = access.NewTokens(p.file)
	p.engine = enginetest.NewFake(p.act)
	p.engine.AddImage(runtime.Image{ID: "sha256:base", Tags: []string{"base:1"}, Cmd: []string{"actor"}, OS: "linux", Arch: "amd64"})
	p.client = p.newBrowser()
	p.start("127.0.0.1:0")
	t.Cleanup(func() {
		close(p.release)
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		p.svc.Shutdown(ctx, false)
		p.end()
	})
	return p
}

// newBrowser is a browser that keeps cookies and follows no redirects.
func (p *page) newBrowser() *http.Client {
	jar, err := cookiejar.New(nil)
	must(p.t, err)
	transport := &http.Transport{DisableCompression: true}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Jar: jar, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (p *page) write(name, content string) {
	p.t.Helper()
	at := filepath.Join(p.sources, name)
	must(p.t, os.MkdirAll(filepath.Dir(at), 0o755))
	must(p.t, os.WriteFile(at, []byte(content), 0o644))
}

// start serves at an address, as `aod serve` does.
func (p *page) start(address string) {
	p.t.Helper()
	logger := slog.New(slog.NewJSONHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	containers := container.New(p.engine, container.Options{Logger: logger})
	var err error
	told := pushes.NewFeature(pushes.Options{Hooks: egress.New(egress.Options{Private: []outside.Exception{{Host: "hook.example", Addr: netip.MustParseAddr("127.0.0.1")}}})})
	p.svc, err = orchestrator.NewService(orchestrator.Options{
		Home: p.home, Sources: []string{p.sources}, Logger: logger, Concurrency: 2,
		Features: []feature.Feature{artifacts.New(), messages.New(), told, webhooks.New(told), schedules.New(nil), mcpsessions.New(0)},
		Teams:    p.tokens.Teams,
		Kinds: run.Kinds{
			"capsule": containers, "au": containers, "agent": containers, "flow": kindflow.New(logger), "remote": remote.New(remote.Options{Logger: logger}),
		},
	})
	must(p.t, err)
	must(p.t, p.svc.Start(context.WithoutCancel(trusted.Context(p.t))))
	p.opts.Version, p.opts.Logger, p.opts.Workers = "1.2.3", logger, p.fleet
	p.opts.SignIn = func(ctx context.Context, token string) (signins.Session, error) { return p.api.SignIn(ctx, token) }
	p.web, err = web.New(p.svc, p.opts)
	must(p.t, err)
	p.api, err = httpapi.New(p.svc, httpapi.Options{
		Token: token, Tokens: p.tokens, People: p.opts.People, Hosts: []string{"aod.example.com"}, Logger: logger, Version: "1.2.3", Metrics: p.svc.Metrics(), Mounts: p.mounts(),
	})
	must(p.t, err)
	listener, err := net.Listen("tcp", address)
	must(p.t, err)
	p.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	p.stop, p.served = cancel, make(chan error, 1)
	go func(served chan<- error, api *httpapi.API) { served <- api.Serve(ctx, listener) }(p.served, p.api)
}

// mounts are the addresses of the page as `aod serve` mounts them.
func (p *page) mounts() (mounts []httpapi.Mount) {
	for _, r := range p.web.Routes() {
		mounts = append(mounts, httpapi.Mount{
			Patterns: []string{r.Pattern}, Handler: http.HandlerFunc(p.count), Page: p.web.Refuse, Scope: r.Scope, Open: r.Scope == "",
		})
	}
	return mounts
}

// count serves the page, and counts streams.
func (p *page) count(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/ui/live" && !r.URL.Query().Has("once") {
		p.streams.Add(1)
		defer p.streams.Add(-1)
	}
	p.web.ServeHTTP(w, r)
}

// end ends the server. What runs goes on, and the next server has it.
func (p *page) end() {
	p.t.Helper()
	p.stop()
	if err := <-p.served; err != nil {
		p.t.Errorf("serve: %v", err)
	}
	if err := p.svc.Close(); err != nil {
		p.t.Errorf("close the service: %v", err)
	}
}

// act is the program of every fake container: it does what `do` of its input says.
func (p *page) act(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	dirs := map[string]string{}
	for _, m := range spec.Mounts {
		dirs[m.Target] = m.Source
	}
	if dirs["/io"] == "" {
		return 0 // a session's program, to which nobody says anything
	}
	raw, _ := os.ReadFile(filepath.Join(dirs["/io"], "input.json"))
	var input struct{ Do, Say, Message string }
	_ = json.Unmarshal(raw, &input)
	input.Do = cmp.Or(input.Do, input.Message)
	fmt.Fprintf(stdout, "out %s\n", input.Say)
	fmt.Fprintf(stderr, "err %s\n", input.Say)
	result := map[string]any{"n": 1, "got": input.Say}
	switch input.Do {
	case "fail":
		return 3
	case "complain":
		result = map[string]any{"error": map[string]string{"type": input.Say, "message": input.Say}}
	case "wait":
		select {
		case <-p.release:
		case <-ctx.Done():
		case <-enginetest.Terminated(ctx):
			return 143
		}
		fmt.Fprintf(stdout, "later %s\n", input.Say)
	case "chatter": // as many lines as `say` says, and one more whenever it is released
		lines, _ := strconv.Atoi(input.Say)
		for n := range lines {
			fmt.Fprintf(stdout, "%6d %s\n", n, chatter)
		}
		for range p.release {
			fmt.Fprintf(stdout, "more %s\n", chatter)
		}
	case "write": // files: `say` is a JSON object of their contents by their names
		var files map[string]string
		_ = json.Unmarshal([]byte(input.Say), &files)
		for name, content := range files {
			at := filepath.Join(dirs["/io"], "output", name)
			_ = os.MkdirAll(filepath.Dir(at), 0o755)
			_ = os.WriteFile(at, []byte(content), 0o600)
		}
	case "files": // named by `say`, with its name as its content
		at := filepath.Join(dirs["/io"], "output", input.Say)
		_ = os.MkdirAll(filepath.Dir(at), 0o755)
		_ = os.WriteFile(at, []byte(input.Say), 0o600)
		result["report"] = input.Say
	}
	text, _ := json.Marshal(result)
	_ = os.WriteFile(filepath.Join(dirs["/io"], "output.json"), text, 0o600)
	if input.Do == "complain" {
		return 1
	}
	return 0
}

// answer is one of the server, read to its end.
type answer struct {
	*http.Response
	body string
}

// get asks for an address, such as /ui/runs, with headers "Name: value".
func (p *page) get(path string, headers ...string) answer {
	p.t.Helper()
	return p.do(p.request(http.MethodGet, path, nil, headers...))
}

// post sends a form: pairs of a name and a value.
func (p *page) post(path string, form ...string) answer {
	p.t.Helper()
	return p.do(p.request(http.MethodPost, path, fields(form...)))
}

func fields(form ...string) url.Values {
	values := url.Values{}
	for i := 0; i < len(form); i += 2 {
		values.Add(form[i], form[i+1])
	}
	return values
}

func (p *page) request(method, path string, form url.Values, headers ...string) *http.Request {
	p.t.Helper()
	r, err := http.NewRequestWithContext(trusted.Context(p.t), method, p.url+path, strings.NewReader(form.Encode()))
	must(p.t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return r
}

func (p *page) do(r *http.Request) answer {
	p.t.Helper()
	resp, err := p.client.Do(r)
	must(p.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	must(p.t, err)
	return answer{resp, string(raw)}
}

// wants fails the test unless the answer has the status, and says all the texts.
func (a answer) wants(t testing.TB, status int, texts ...string) answer {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("%s: status %d, want %d: %s", a.Request.URL, a.StatusCode, status, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("%s: %q isn't in %s", a.Request.URL, text, a.body)
		}
	}
	return a
}

// leads fails the test unless the answer is a redirect to an address as it stands there.
func (a answer) leads(t testing.TB, to string) answer {
	t.Helper()
	if got := a.wants(t, http.StatusSeeOther).Header.Get("Location"); got != to {
		t.Errorf("%s leads to %q, want %q", a.Request.URL, got, to)
	}
	return a
}

// signIn signs in with a token; no scope is the server's own token, others make one of that name.
func (p *page) signIn(scopes ...access.Scope) *page {
	p.t.Helper()
	with := token
	if len(scopes) > 0 {
		with = p.newToken(string(scopes[0]), scopes...)
	}
	p.post("/ui/login", "token", with).leads(p.t, "./runs")
	return p
}

func (p *page) newToken(name string, scopes ...access.Scope) string {
	p.t.Helper()
	made, err := p.tokens.Add(access.Grant{Name: name, Scopes: scopes})
	must(p.t, err)
	return made
}

// submit begins a run of the actor, whose input says what to do.
func (p *page) submit(do, say string) string {
	p.t.Helper()
	input, err := json.Marshal(map[string]string{"do": do, "say": say})
	must(p.t, err)
	record, _, err := p.svc.Submit(trusted.Context(p.t), spool.Submission{Unit: "actor", Input: input})
	must(p.t, err)
	return record.ID
}

// ran is submit, and waits for the end.
func (p *page) ran(do, say string) string {
	p.t.Helper()
	id := p.submit(do, say)
	p.ended(id)
	return id
}

// begun is submit of a run that goes on until release, and waits until its program runs.
func (p *page) begun() string {
	p.t.Helper()
	id := p.submit("wait", "")
	p.until(id, func(r api.Record) bool { return r.State == api.Running })
	return id
}

// ended waits until a run has its outcome.
func (p *page) ended(id string) (record api.Record) {
	p.t.Helper()
	p.until(id, func(r api.Record) bool {
		record = r
		return r.Outcome != ""
	})
	return record
}

func (p *page) until(id string, holds func(api.Record) bool) {
	p.t.Helper()
	testkit.Eventually(p.t, "what the test waits for", func() bool {
		r, err := p.svc.Runs.Get(trusted.Context(p.t), id)
		must(p.t, err)
		return holds(r)
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
