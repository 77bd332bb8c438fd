package capsuleapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// echoing is a protocol that answers with who asks for what.
func echoing(b *handoff.Broker) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %s", b.Caller().Run, r.Method, r.URL.Path)
	})
}

// mounted has the protocols at their paths.
func (w *harness) mounted(protocols map[string]func(*handoff.Broker) http.Handler) *harness {
	w.t.Helper()
	var mounts []Mount
	for path, handler := range protocols {
		mounts = append(mounts, Mount{Path: path, New: handler})
	}
	w.h = NewHandler(w.caller, w.runs, w.limits, nil, mounts...)
	return w
}

func TestAProtocolIsServedBelowItsPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t).mounted(map[string]func(*handoff.Broker) http.Handler{"/v1/": echoing, "/mcp": echoing})
	for _, path := range []string{"/v1/models", "/v1/chat/completions", "/v1", "/v1/", "/mcp", "/mcp/", "/mcp/a/"} {
		rec := w.do("PATCH", path, "")
		if rec.Code != 200 || rec.Body.String() != idOf(1)+" PATCH "+path {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
		if rec.Header().Get("X-Content-Type-Options") != "nosniff" || rec.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, rec.Header())
		}
	}
	for _, path := range []string{"/v1x", "/v2/models", "/mcpx", "/v1/../handoff", "/v1//models", "/v1/./a", "/v1//", "//"} {
		answered[problem](t, w.do("GET", path, ""), 404)
	}
	answered[map[string]any](t, w.do("GET", "/run", ""), 200)
}

func TestWithoutAProtocolThereIsNothingAtItsPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/v1/models", "/v1/", "/mcp", "/health/", "/handoff/", "/"} {
		if p := answered[problem](t, w.do("GET", path, ""), 404); p.Code != "not_found" {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

func TestAProtocolKnowsWhichRunAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dispatcher := NewDispatcher(nil)
	mount := Mount{Path: "/mcp", New: echoing}
	ask := func() *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		dispatcher.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/mcp", nil))
		return rec
	}
	answered[problem](t, ask(), 503)
	for n := range 2 {
		caller := w.caller
		caller.Run = idOf(n + 5)
		dispatcher.Assign(NewHandler(caller, w.runs, w.limits, nil, mount))
		if rec := ask(); rec.Body.String() != caller.Run+" GET /mcp" {
			t.Errorf("%s", rec.Body)
		}
		must(t, dispatcher.Release(t.Context()))
	}
}

func TestAProxyGetsWhatIsForOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mount := Mount{Path: ProxyPath, New: func(*handoff.Broker) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "for "+r.URL.Host) })
	}}
	handler := NewHandler(w.caller, w.runs, w.limits, nil, mount)
	dispatcher := NewDispatcher(nil)
	ask := func(method, target string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
		r.URL = must2(url.Parse(target))
		dispatcher.ServeHTTP(rec, r)
		return rec
	}
	others := map[string]string{"//a.example:443": http.MethodConnect, "http://a.example/run": http.MethodGet, "http://127.0.0.1:8080/run": http.MethodGet}
	for target, method := range others { // no run has claimed it
		answered[problem](t, ask(method, target), 503)
	}
	dispatcher.Assign(handler)
	for range maxRequests { // all places of requests are taken
		handler.requests <- struct{}{}
	}
	for target, method := range others {
		if rec := ask(method, target); !strings.HasPrefix(rec.Body.String(), "for ") {
			t.Errorf("%s %s: %d %s", method, target, rec.Code, rec.Body)
		}
	}
	for range maxRequests {
		<-handler.requests
	}
	for _, target := range []string{"/run", "http://127.0.0.1:7070/run", "http://localhost:7070/run", "http://host.docker.internal:7070/run"} {
		answered[map[string]any](t, ask(http.MethodGet, target), 200)
	}
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAProtocolMakesCallsUnderTheRulesOfItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits.Calls = 2
	var met error
	w.mounted(map[string]func(*handoff.Broker) http.Handler{"/mcp": func(b *handoff.Broker) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, met = b.Start(r.Context(), handoff.Request{Target: "callee", Key: r.URL.RawQuery})
		})
	}})
	w.call(200, `{}`, "Idempotency-Key: k")
	w.do("POST", "/mcp?k", "") // joins the call of the capsule API
	if met != nil || w.runs.Started() != 1 || w.spent() != 1 {
		t.Errorf("%v: %d started, %d counted", met, w.runs.Started(), w.spent())
	}
	w.do("POST", "/mcp?other", "")
	w.do("POST", "/mcp?third", "")
	var refusal *handoff.Refusal
	if !errors.As(met, &refusal) || refusal.Rule != handoff.RuleCalls || w.spent() != 2 {
		t.Errorf("%v: %d counted", met, w.spent())
	}
}

func TestAProtocolThatPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t).mounted(map[string]func(*handoff.Broker) http.Handler{
		"/before": func(*handoff.Broker) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("canary") })
		},
		"/amid": func(*handoff.Broker) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "half")
				panic("canary")
			})
		},
	})
	if p := answered[problem](t, w.do("GET", "/before", ""), 500); strings.Contains(p.Detail, "canary") {
		t.Errorf("%+v", p)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("%v", err)
		}
	}()
	w.do("GET", "/amid", "")
	t.Error("a half answer looks like a whole one")
}

func TestAProtocolMayStreamForLongerThanAnAnswerTakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t).mounted(map[string]func(*handoff.Broker) http.Handler{"/mcp": func(*handoff.Broker) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 2 {
				_, _ = io.WriteString(w, "part\n")
				_ = http.NewResponseController(w).Flush()
			}
		})
	}})
	conn := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	w.h.ServeHTTP(conn, httptest.NewRequestWithContext(t.Context(), "GET", "/health", nil))
	if conn.write.IsZero() {
		t.Fatal("an answer of the capsule API has no deadline")
	}
	w.h.ServeHTTP(conn, httptest.NewRequestWithContext(t.Context(), "GET", "/mcp", nil))
	if !conn.write.IsZero() || !conn.Flushed {
		t.Errorf("deadline %s, flushed %v", conn.write, conn.Flushed)
	}
}

// deadlines is a connection that remembers until when it may be written to.
type deadlines struct {
	*httptest.ResponseRecorder
	write time.Time
}

func (d *deadlines) SetReadDeadline(time.Time) error { return nil }

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.write = at
	return nil
}

var _ http.Flusher = httpwire.Watch(nil) // protocols of others look for it

func TestCloseWaitsForRequestsUnderWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ request, closed time.Duration }{
		"no request":                {0, 0},
		"one that ends":             {3 * time.Second, 3 * time.Second},
		"one that outlives its run": {time.Hour, restTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t).mounted(map[string]func(*handoff.Broker) http.Handler{"/slow": func(*handoff.Broker) http.Handler {
					return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(c.request) })
				}})
				for range 2 {
					go w.h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/slow", nil))
				}
				synctest.Wait()
				for range 2 {
					start := time.Now()
					must(t, w.h.Close())
					if took := time.Since(start); took != c.closed {
						t.Errorf("it takes %v", took)
					}
					c.closed = 0 // the second call does nothing
				}
				time.Sleep(c.request) // until they end
			})
		})
	}
}
