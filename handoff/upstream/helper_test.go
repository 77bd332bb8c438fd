package upstream

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const key = "hunter2-hunter2"

// harness is a service behind an upstream, and the capsule API of a run that may use it.
type harness struct {
	t       *testing.T
	service *httptest.Server
	api     *httptest.Server
	handler *handler

	mu    sync.Mutex
	asked []*http.Request
	told  []Exchange
}

// newBench has a service answer behind the upstream "svc", with a table row that a test may change.
func newBench(t *testing.T, answer http.HandlerFunc, change func(*Upstream, *Options)) *harness {
	t.Helper()
	b := &harness{t: t}
	b.service = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.asked = append(b.asked, r.Clone(r.Context()))
		b.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(b.service.Close)
	row := Upstream{URL: b.service.URL + "/base", Secret: "the-key", Header: "Authorization", Scheme: "Bearer", Methods: usual}
	opts := Options{Key: func(string) (secrets.Secret, error) { return key, nil }}
	if change != nil {
		change(&row, &opts)
	}
	u, err := New(Table{"svc": row, "other": row}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	b.handler = u.Handler(Session{Run: "r", Names: []string{"svc", "gone"}, Record: func(e Exchange) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.told = append(b.told, e)
	}}).(*handler)
	b.api = httptest.NewServer(b.handler)
	t.Cleanup(b.api.Close)
	return b
}

// do sends a request to the capsule API, and follows nothing.
func (b *harness) do(method, path string, header http.Header, body io.Reader) *http.Response {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.api.URL+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { response.Body.Close() })
	return response
}

// problem reads a refusal, and holds it against a status and a rule.
func (b *harness) problem(response *http.Response, status int, rule string) httpwire.Problem {
	b.t.Helper()
	var p httpwire.Problem
	if err := json.NewDecoder(response.Body).Decode(&p); err != nil || response.Header.Get("Content-Type") != httpwire.TypeProblem {
		b.t.Fatalf("%d is no problem: %v", response.StatusCode, err)
	}
	if response.StatusCode != status || p.Status != status || p.Rule != rule || p.Hint == "" {
		b.t.Errorf("%d %+v, not %d %s", response.StatusCode, p, status, rule)
	}
	return p
}

func (b *harness) last() *http.Request {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.asked) == 0 {
		b.t.Fatal("the service was asked nothing")
	}
	return b.asked[len(b.asked)-1]
}

// exchange waits for the newest exchange that is over.
func (b *harness) exchange() Exchange {
	b.t.Helper()
	var last Exchange
	testkit.Eventually(b.t, "the request is told of", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		if n := len(b.told); n > 0 {
			last = b.told[n-1]
		}
		return len(b.told) > 0
	})
	return last
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

func read(t *testing.T, r io.Reader) string {
	t.Helper()
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func noKey(string) (secrets.Secret, error) {
	return "", fault.New(fault.NotFound, "there is no secret %q", "the-key").WithHint("make one")
}
