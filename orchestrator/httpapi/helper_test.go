package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/feature/artifacts"
	"github.com/agent-on-demand/aod/orchestrator/feature/mcpsessions"
	"github.com/agent-on-demand/aod/orchestrator/feature/messages"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	kindflow "github.com/agent-on-demand/aod/orchestrator/kind/flow"
	"github.com/agent-on-demand/aod/orchestrator/kind/remote"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/protocol/agents"
	"github.com/agent-on-demand/aod/orchestrator/protocol/mcp"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

const token = "s3cret-token"

// server is a Service over a fake engine, served on a real connection.
type server struct {
	t           testing.TB
	url         string
	home        string
	api         *API
	log         *testkit.Log
	svc         *orchestrator.Service
	sources     string
	stop        context.CancelFunc // ends Serve
	served      chan error
	release     chan struct{} // lets programs that wait go on
	policy      agents.Policy // for tasks
	pool        int           // containers that may wait for runs
	minFreeDisk int64
}

func newServer(t testing.TB, change func(*Options)) *server {
	t.Helper()
	return newServerWith(t, agents.Policy{}, change)
}

// newServerWith is a server with a policy for tasks.
func newServerWith(t testing.TB, policy agents.Policy, change func(*Options)) *server {
	t.Helper()
	s := unstarted(t)
	s.policy = policy
	reload := func(context.Context) (api.Reload, error) {
		return api.Reload{Changed: []string{"teams.a.slots"}, Restart: []string{}}, nil
	}
	opts := Options{Token: token, Reload: reload, Logger: slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Version: "1.2.3"}
	if change != nil {
		change(&opts)
	}
	s.start(opts)
	return s
}

// unstarted is a server that has one unit and isn't started.
func unstarted(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, log: &testkit.Log{}, sources: t.TempDir(), served: make(chan error, 1), release: make(chan struct{})}
	for name, content := range unitFiles {
		write(t, filepath.Join(s.sources, "actor", name), content)
	}
	return s
}

func (s *server) start(opts Options) {
	s.t.Helper()
	program := enginetest.Program(s.act)
	if s.pool > 0 {
		program = enginetest.WithInit(s.act)
	}
	engine := enginetest.NewFake(program)
	engine.AddImage(runtime.Image{ID: "sha256:base", Tags: []string{"base:1"}, Cmd: []string{"actor"}, OS: "linux", Arch: "amd64"})
	s.home = filepath.Join(s.t.TempDir(), "home")
	var err error
	private := []outside.Exception{{Host: "hook.example", Addr: netip.MustParseAddr("127.0.0.1")}}
	told := pushes.NewFeature(pushes.Options{Hooks: egress.New(egress.Options{Private: private}), Delay: time.Millisecond, Tries: 3})
	containers := container.New(engine, container.Options{Logger: opts.Logger, Pool: pool.Options{Size: s.pool}})
	s.svc, err = orchestrator.NewService(orchestrator.Options{
		Home: s.home, Sources: []string{s.sources}, Logger: opts.Logger, Concurrency: 2, MinFreeDisk: s.minFreeDisk,
		Features: []feature.Feature{artifacts.New(), messages.New(), told, webhooks.New(told), schedules.New(nil), mcpsessions.New(0)},
		Kinds:    run.Kinds{"capsule": containers, "au": containers, "remote": remote.New(remote.Options{Logger: opts.Logger}), "agent": containers, "flow": kindflow.New(opts.Logger)},
	})
	must(s.t, err)
	must(s.t, s.svc.Start(trusted.Context(s.t)))
	opts.Metrics = s.svc.Metrics()
	about := agents.Options{Policy: s.policy, PayloadBytes: opts.PayloadBytes, Logger: opts.Logger}
	opts.Mounts = append(opts.Mounts, mountsOf(s.svc, about)...)
	s.api, err = New(s.svc, opts)
	must(s.t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(s.t, err)
	s.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go func() { s.served <- s.api.Serve(ctx, listener) }()
	s.t.Cleanup(s.end)
}

func (s *server) end() {
	s.stop()
	if err := <-s.served; err != nil {
		s.t.Errorf("serve: %v", err)
	}
	close(s.release)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	s.svc.Shutdown(ctx, true)
	if err := s.svc.Close(); err != nil {
		s.t.Errorf("close the service: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// mountsOf are the mounts of a server as aod serve makes them.
func mountsOf(svc *orchestrator.Service, about agents.Options) []Mount {
	handler := agents.Handler(agentService{svc, svc.Runs, svc.Feed}, about)
	return []Mount{
		{Patterns: agents.Patterns(), Handler: handler, Refusal: agents.Refusal},
		{Patterns: []string{agents.ReadyPattern}, Handler: handler, Open: true},
		{Patterns: mcp.Patterns(), Handler: mcp.New(noTools{}, mcp.Options{})},
		{Patterns: relay.Patterns(), Handler: relay.NewDoor(noServers{}, relay.DoorOptions{})},
	}
}

// noTools is a service of MCP that offers nothing.
type noTools struct{ mcp.Service }

func (noTools) Units(context.Context) ([]api.Unit, error) { return nil, nil }

// noServers is a host without MCP servers.
type noServers struct{ relay.Host }

func (noServers) Rules(context.Context, string) (relay.Options, error) {
	return relay.Options{}, fault.New(fault.NotFound, "there is no such unit")
}

// agentService is the Service as the agent HTTP contract needs it.
type agentService struct {
	*orchestrator.Service
	*records.Reader
	*records.Feed
}

func (s agentService) Schema(ctx context.Context, name string) ([]byte, error) {
	return s.Units.Schema(ctx, name)
}

func (s agentService) FullName(ctx context.Context, name string) string {
	return s.Units.FullName(ctx, name)
}

// answer is one of the server, read to its end.
type answer struct {
	*http.Response
	body string
}

// do sends a request with the token, and with headers "Name: value".
func (s *server) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	r := s.request(method, path, body, headers...)
	resp, err := http.DefaultClient.Do(r)
	must(s.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	must(s.t, err)
	a := answer{resp, string(raw)}
	conforms(s.t, r, a)
	return a
}

func (s *server) request(method, path, body string, headers ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(trusted.Context(s.t), method, s.url+path, strings.NewReader(body))
	must(s.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	if strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
		if value == "-" {
			r.Header.Del(name)
		}
	}
	return r
}

// wants fails the test unless the answer has the status, and if it is an error's, is a
// problem of that status.
func (a answer) wants(t testing.TB, status int) answer {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", a.StatusCode, status, a.body)
	}
	if status < 400 {
		return a
	}
	p := decode[httpwire.Problem](t, a)
	if p.Status != status || p.Detail == "" || p.Title == "" || p.Type != "urn:aod:fault:"+p.Code || a.Header.Get("Content-Type") != httpwire.TypeProblem {
		t.Errorf("no problem: %s %s", a.Header.Get("Content-Type"), a.body)
	}
	return a
}

func decode[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%v in %q", err, a.body)
	}
	if !strings.HasSuffix(a.body, "}\n") {
		t.Errorf("the body doesn't end with a newline: %q", a.body)
	}
	return v
}

// run submits and waits for the end.
func (s *server) run(input string, headers ...string) api.Record {
	s.t.Helper()
	a := s.do("POST", "/v1/runs?wait=3m", `{"unit":"actor","input":`+input+`}`, headers...).wants(s.t, 200)
	return decode[api.Record](s.t, a)
}

// begin submits a run that goes on until release, and returns when its program runs.
func (s *server) begin() string {
	s.t.Helper()
	a := s.do("POST", "/v1/runs", `{"unit":"actor","input":{"do":"wait"}}`).wants(s.t, 202)
	id := decode[api.Record](s.t, a).ID
	s.until(func() bool {
		return decode[api.Record](s.t, s.do("GET", "/v1/runs/"+id, "").wants(s.t, 200)).State == api.Running
	})
	return id
}

func (s *server) until(ok func() bool) {
	s.t.Helper()
	testkit.Eventually(s.t, "what the test waits for", ok)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func unmarshal(t testing.TB, raw []byte, into any) {
	t.Helper()
	must(t, json.Unmarshal(raw, into))
}

var client = http.DefaultClient

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(trusted.Context(t))
	t.Cleanup(cancel)
	return ctx, cancel
}

func request(method, path, body string) *http.Request {
	return httptest.NewRequest(method, path, strings.NewReader(body))
}

func record(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
