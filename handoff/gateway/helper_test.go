package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/handoff/gateway/script"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// longSilence is longer than anybody is silent who doesn't hang.
const longSilence = 20 * time.Second

// canary is the key of every provider of the tests: it must be seen by providers alone.
const canary = "sk-canary-0123456789"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bench is a gateway before providers of the tests, and a server for one run.
type bench struct {
	t       testing.TB
	catalog catalog.Catalog
	opts    Options
	session Session
	gw      *Gateway
	server  *httptest.Server
	told    told
	memory  *bytegate.Gate
}

// told remembers exchanges.
type told struct {
	mu  sync.Mutex
	all []Exchange
}

func (r *told) Record(e Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, e)
}

func (r *told) last(t testing.TB, n int) Exchange {
	t.Helper()
	var last Exchange
	testkit.Eventually(t, fmt.Sprintf("%d exchanges are told", n), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.all) < n {
			return false
		}
		last = r.all[len(r.all)-1]
		return true
	})
	return last
}

// newBench has a model m of one provider p, a compatible one at the address.
func newBench(t testing.TB, address string) *bench {
	b := &bench{t: t, memory: bytegate.New(0), catalog: catalog.Catalog{
		Providers: map[string]catalog.Provider{"p": {Kind: catalog.Compatible, BaseURL: address, Key: "k", AnyField: true, Dialects: catalog.Dialects()}},
		Models: map[string]catalog.Model{"m": {
			Use: []catalog.Use{{Provider: "p", Model: "up"}}, MaxOutput: 100,
			Price: &catalog.Price{Input: 1e9, Cached: 5e8, CacheWrite: 2e9, Output: 3e9},
		}},
	}}
	b.opts = Options{
		Key:     func(string) (secrets.Secret, error) { return canary, nil },
		Connect: time.Minute, FirstByte: longSilence, Silence: longSilence, Backoff: time.Millisecond,
	}
	b.session = Session{Run: "run", Root: "run", Unit: "unit", Models: []string{"m"}, Recorder: &b.told, Content: true}
	return b
}

// counted has what a run sends count at the bench's gate, as the capsule API does.
func (b *bench) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, r := httpwire.Receive(w, r)
		defer in.Done()
		in.Count(b.memory, "run")
		next.ServeHTTP(w, r)
	})
}

// serve starts what was set up.
func (b *bench) serve() *bench {
	b.t.Helper()
	var err error
	b.gw, err = New(b.catalog, b.opts)
	must(b.t, err)
	b.server = httptest.NewServer(b.counted(b.gw.Handler(b.session)))
	b.t.Cleanup(b.server.Close)
	b.t.Cleanup(b.gw.Close)
	return b
}

// answered is an answer as a test sees it.
type answered struct {
	status int
	header http.Header
	body   string
}

func (b *bench) ask(method, path, body string, headers ...string) answered {
	b.t.Helper()
	return askAt(b.t, b.server.URL, method, path, body, headers...)
}

func askAt(t testing.TB, server, method, path, body string, headers ...string) answered {
	t.Helper()
	a, err := tryAt(t, server, method, path, body, headers...)
	must(t, err)
	return a
}

// tryAt is askAt for an answer that may break off.
func tryAt(t testing.TB, server, method, path, body string, headers ...string) (answered, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, server+path, strings.NewReader(body))
	must(t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return answered{}, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	return answered{answer.StatusCode, answer.Header, string(raw)}, err
}

// problem is an error in any envelope.
type problem struct {
	Type  string
	Error struct{ Type, Message, Rule, Hint, Code string }
}

func (a answered) problem(t testing.TB, status int, rule string) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.status != status || p.Error.Rule != rule || p.Error.Message == "" || p.Error.Hint == "" {
		t.Fatalf("%d %s: want %d %s (%v)", a.status, a.body, status, rule, err)
	}
	if a.header.Get("X-Should-Retry") != "false" {
		t.Errorf("clients would ask again: %v", a.header)
	}
	return p
}

// books is a ledger as an orchestrator makes one.
type books struct {
	tree *ledger.Tree
	id   string

	mu      sync.Mutex
	settled []Spent
}

func newBooks(limit ledger.Amount) *books {
	b := &books{tree: ledger.New(), id: "run"}
	b.tree.Open("run", "", limit)
	return b
}

type entry struct {
	books *books
	hold  *ledger.Hold
}

func (b *books) Reserve(ctx context.Context, c Call, worst ledger.Amount) (Hold, error) {
	if c.Beside {
		h := b.tree.TryReserve(worst, b.id)
		if h == nil {
			return nil, errors.New("no room now")
		}
		return entry{b, h}, nil
	}
	h, err := b.tree.Reserve(ctx, worst, b.id)
	if err != nil {
		return nil, err
	}
	return entry{b, h}, nil
}

func (e entry) Settle(_ context.Context, _ Call, s Spent) error {
	e.hold.Settle(s.Amount)
	e.books.mu.Lock()
	defer e.books.mu.Unlock()
	e.books.settled = append(e.books.settled, s)
	return nil
}

func (b *books) spent() (spent, reserved ledger.Amount) { return b.tree.Spent(b.id) }

func scriptOf(t testing.TB, text string) *script.Script {
	t.Helper()
	s, findings := script.Read("script.yaml", []byte(text))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return s
}

var _ = fault.Input
