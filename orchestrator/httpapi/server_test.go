package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
)

func TestProblems(t *testing.T) {
	t.Parallel()
	log := &testkit.Log{}
	api, err := New(&orchestrator.Service{}, Options{NoAuth: true, Logger: slog.New(slog.NewTextHandler(log, nil))})
	must(t, err)
	cause := errors.New("the cause, for the log")
	cases := []struct {
		err    error
		status int
		code   string
		logged bool
	}{
		{cause, 500, "internal", true},
		{fmt.Errorf("x: %w", fault.Wrap(fault.Input, cause, "m").WithFindings([]fault.Finding{{Pointer: "/a", Message: "f"}})), 422, "invalid_input", false},
		{fault.Wrap(fault.Unavailable, cause, "m"), 503, "unavailable", true},
		{fault.Wrap(fault.Busy, cause, "m"), 429, "busy", false},
		{echo.ErrNotFound, 404, "not_found", false},
	}
	for _, c := range cases {
		e := api.routes.router
		r := request("GET", "/", "")
		w := record(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { e.HTTPErrorHandler(c.err, e.NewContext(r, w)) }), r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), `"code":"`+c.code+`"`) || strings.Contains(w.Body.String(), "cause") {
			t.Errorf("%v: %d %s", c.err, w.Code, w.Body)
		}
		if again := w.Header().Get("Retry-After") != ""; again != (c.status == 429 || c.status == 503) {
			t.Errorf("%v: headers %v", c.err, w.Header())
		}
		if logged := strings.Contains(log.String(), "the cause"); logged != c.logged {
			t.Errorf("%v: logged is %v: %s", c.err, logged, log)
		}
		log.Reset()
	}
}

func TestAPanicIsAProblemWithoutItsWords(t *testing.T) {
	t.Parallel()
	log := &testkit.Log{}
	api, err := New(&orchestrator.Service{}, Options{NoAuth: true, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	must(t, err)
	r := request("GET", "/v1/units", "") // there is no Service to ask
	r.Host = "localhost"
	w := record(api.Handler(), r)
	if w.Code != 500 || strings.Contains(w.Body.String(), "nil pointer") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if text := log.String(); !strings.Contains(text, "unitHandlers.list") || !strings.Contains(text, "nil pointer") {
		t.Errorf("the log has no stack: %s", text)
	}
	err = recovered(func(echo.Context) error { panic("a payload") })(echo.New().NewContext(r, w))
	var panicked *httpwire.PanicError
	if !errors.As(err, &panicked) || strings.Contains(err.Error(), "payload") || strings.Contains(string(panicked.Stack), "a payload") {
		t.Errorf("error %v", err)
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.do("GET", "/readyz", "").wants(t, 200)
	if body := s.do("GET", "/metrics", "").wants(t, 200).body; !strings.Contains(body, "# TYPE") {
		s.run(`{}`)
		if body = s.do("GET", "/metrics", "").body; !strings.Contains(body, "aod_runs_total") {
			t.Errorf("metrics %q", body)
		}
	}
	s.do("GET", "/metrics", "", "Authorization: -").wants(t, 401)
	done, stop := contextWithCancel(t)
	stop()
	s.svc.Shutdown(done, false)
	if a := s.do("GET", "/readyz", "").wants(t, 503); !strings.Contains(a.body, "shutting down") || a.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", a.body, a.Header)
	}
	s.do("POST", "/v1/runs", `{"unit":"actor"}`).wants(t, 503)
}

func TestPruneSaysWhatWent(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.run(`{}`)
	for _, bad := range []string{``, `{"older_than":"1"}`, `{"older_than":"-1h"}`, `{"max_bytes":-1}`, `{"dryrun":true}`, `{"max_bytes":1.5}`} {
		s.do("POST", "/v1/prune", bad).wants(t, 400)
	}
	s.do("POST", "/v1/prune", `{"older_than":"`+strings.Repeat("1", 20<<10)+`"}`).wants(t, 413)
	s.until(func() bool {
		return strings.HasPrefix(s.do("POST", "/v1/prune", `{"dry_run":true}`).wants(t, 200).body, `{"runs":1,`)
	})
}

func TestNothingThatAClientSendsIsLogged(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root+"/canary.txt", "canary")
	s := newServer(t, func(o *Options) { o.FileRoots = []string{root}; o.Hosts = []string{"canary.example"} })
	const agent = "User-Agent: canary"
	body, header := formOf(t, part{"unit", "", "actor"}, part{"doc", "canary.txt", "canary"}, part{"input", "", `{"do":"read","say":"canary"}`})
	id := decode[struct{ ID string }](t, s.do("POST", "/v1/runs?wait=3m", body, header, agent, "Idempotency-Key: canary", "X-Any: canary").wants(t, 200)).ID
	bad, header := formOf(t, part{"unit", "", "actor"}, part{"canary", "canary", "canary"})
	s.do("POST", "/v1/runs", bad, header, agent).wants(t, 422)
	for _, c := range [][]string{
		{"POST", "/v1/runs?wait=9s", `{"unit":"actor","input":{"do":"canary","say":"canary"}}`, agent},
		{"POST", "/v1/runs", `{"unit":"canary","input":{"canary":"canary"}}`, agent},
		{"POST", "/v1/runs", `{"canary`, agent},
		{"POST", "/v1/runs?canary=canary", `{}`, agent},
		{"GET", "/canary/canary?canary", ``, agent},
		{"CANARY", "/v1/runs", ``, agent},
		{"GET", "/v1/runs/canary", ``, agent},
		{"GET", "/v1/units/canary", ``, agent},
		{"GET", "/v1/runs/" + id + "/files/canary", ``, agent},
		{"GET", "/v1/runs/" + id + "/logs", ``, agent},
		{"POST", "/v1/runs/" + id + "/cancel", `{"reason":"canary"}`, agent},
		{"GET", "/v1/runs?cursor=canary", ``, agent},
		{"GET", "/healthz", ``, "Host: canary.evil"},
		{"GET", "/healthz", ``, "Host: canary.example"},
		{"GET", "/v1/runs", ``, "Origin: https://canary"},
		{"GET", "/v1/runs", ``, "Authorization: Bearer canary"},
		{"PUT", "/v1/units/canary", `canary`, "Content-Type: application/x-tar"},
		{"POST", "/execute", `{"capsule":"actor","input":{"doc":"` + root + `/canary.txt"}}`, agent},
		{"POST", "/execute", `{"capsule":"canary","input":{"doc":"/canary"},"files":{"canary":"/canary"}}`, agent},
	} {
		s.do(c[0], c[1], c[2], c[3])
	}
	running := s.begin()
	s.do("POST", "/v1/runs/"+running+"/cancel", `{"reason":"canary"}`)
	text := s.log.String()
	for line := range strings.Lines(text) {
		if strings.Contains(strings.ToLower(line), "canary") || strings.Contains(line, token) {
			t.Errorf("logged: %s", line)
		}
	}
	for _, want := range []string{`"route":"/v1/runs/:id/files/*"`, `"run":"` + id + `"`, `"status":202`, `"route":"(none)"`, `"duration_ms":`, `"bytes":`} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %s", want)
		}
	}
}

func TestThePool(t *testing.T) {
	t.Parallel()
	s := unstarted(t)
	s.pool = 2
	write(t, s.sources+"/actor/agent.yaml", "name: actor\nwarm: 1\n")
	s.start(Options{Token: token})

	t.Run("shows what waits before anybody calls", func(t *testing.T) {
		var pool api.PoolStats
		s.until(func() bool {
			pool = decode[api.PoolStats](t, s.do("GET", "/v1/pool", "").wants(t, 200))
			return pool.Waiting == 1
		})
		if pool.Size != 2 || len(pool.Units) != 1 || pool.Units[0].Unit != "actor" || pool.Units[0].Fixed != 1 || pool.Units[0].Hits != 0 {
			t.Errorf("pool %+v", pool)
		}
	})
	t.Run("has its figures among the metrics", func(t *testing.T) {
		text := s.do("GET", "/metrics", "").wants(t, 200).body
		for _, line := range []string{"aod_pool_size 2\n", `aod_pool_waiting{unit="actor"} 1` + "\n", `aod_pool_refills_total{unit="actor"} 1` + "\n"} {
			if !strings.Contains(text, line) {
				t.Errorf("the metrics have no %s", line)
			}
		}
	})
	t.Run("gives what waits to the next run", func(t *testing.T) {
		waiting := decode[api.PoolStats](t, s.do("GET", "/v1/pool", "")).Units[0].Waiting[0]
		record := s.run(`{}`)
		if record.Container == nil || record.Container.ID != waiting.Container || record.Container.WaitedMS <= 0 {
			t.Errorf("container %+v, not %s", record.Container, waiting.Container)
		}
		if pool := decode[api.PoolStats](t, s.do("GET", "/v1/pool", "")); pool.Units[0].Hits != 1 || pool.Units[0].Misses != 0 {
			t.Errorf("pool %+v", pool)
		}
	})
	t.Run("is for those who have the token", func(t *testing.T) {
		s.do("GET", "/v1/pool", "", "Authorization: -").wants(t, 401)
	})
}

func TestAServerWithoutAPool(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.run(`{}`)
	pool := decode[api.PoolStats](t, s.do("GET", "/v1/pool", "").wants(t, 200))
	if pool.Size != 0 || pool.Waiting != 0 || len(pool.Units) != 0 {
		t.Errorf("pool %+v", pool)
	}
}
