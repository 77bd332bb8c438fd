package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
)

// modelAsk is a request of the unit "caller" for a model.
type modelAsk struct {
	Said  []string `json:"said,omitempty"`  // the messages; none: one
	Body  string   `json:"body,omitempty"`  // instead of one with messages
	Bytes int      `json:"bytes,omitempty"` // of one message, instead of those
	Key   string   `json:"key,omitempty"`   // its Idempotency-Key
	After string   `json:"after,omitempty"`
}

func (a modelAsk) body() string {
	if a.Body != "" {
		return a.Body
	}
	if a.Bytes > 0 {
		a.Said = []string{strings.Repeat("x", a.Bytes)}
	}
	var messages []map[string]string
	for _, text := range a.Said {
		messages = append(messages, map[string]string{"role": "user", "content": text})
	}
	if messages == nil {
		messages = []map[string]string{{"role": "user", "content": "What is the colour of the sky?"}}
	}
	raw, _ := json.Marshal(map[string]any{"model": "m", "messages": messages})
	return string(raw)
}

// askAll asks what a script says, and remembers the answers below its mark.
func (w *fixture) askAll(ctx context.Context, api *http.Client, s script) {
	var all sync.WaitGroup
	for _, a := range s.Asks {
		do := func() { w.askModel(ctx, api, s, a) }
		if s.AtOnce {
			all.Go(do)
		} else {
			do()
		}
	}
	all.Wait()
}

func (w *fixture) askModel(ctx context.Context, api *http.Client, s script, a modelAsk) {
	if a.After != "" {
		select {
		case <-w.gate(a.After):
		case <-ctx.Done():
			return
		}
	}
	answer := asking{w: w, api: api, key: a.Key}.until(ctx, http.MethodPost, "/v1/chat/completions", []byte(a.body()))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[s.Mark] = append(w.answers[s.Mark], answer)
}

// modelDouble is a provider that bills 10 tokens for each request that comes, 7 of them input.
type modelDouble struct {
	*httptest.Server

	mu       sync.Mutex
	asked    []string // bodies
	underWay int
	most     int // under way at once
	looks    func()
	hold     chan struct{}                                       // nil: it answers at once
	answer   func(n int, w http.ResponseWriter, r *http.Request) // nil: as it does
}

const (
	billedEach  = 10
	modelCanary = "sk-canary-0123456789abcdef"
)

func newModelDouble(t *testing.T) *modelDouble {
	d := &modelDouble{}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	t.Cleanup(d.CloseClientConnections)
	return d
}

func (d *modelDouble) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what came
	d.mu.Lock()
	d.asked = append(d.asked, string(body))
	d.underWay++
	d.most = max(d.most, d.underWay)
	n, looks, hold, answer := len(d.asked), d.looks, d.hold, d.answer
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.underWay--
		d.mu.Unlock()
	}()
	if looks != nil {
		looks()
	}
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	if answer != nil {
		answer(n, w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"%d","choices":[{"message":{"content":"Blue, %d."}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`, n, n)
}

func (d *modelDouble) requests() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.asked)
}

func (d *modelDouble) now() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.underWay
}

// holds has requests wait from now on, until release is called.
func (d *modelDouble) holds() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	hold := make(chan struct{})
	d.hold = hold
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.hold = nil
		close(hold)
	})
}

// modelWorld is a fixture whose unit "caller" may ask the model m, of a double.
type modelWorld struct {
	*fixture
	double *modelDouble
}

// newModelWorld adds lines to the caller's agent.yaml.
func newModelWorld(t *testing.T, agent string, change ...func(*settings)) *modelWorld {
	t.Helper()
	double := newModelDouble(t)
	with := func(o *settings) {
		write(t, filepath.Join(o.Sources[0], "caller", "agent.yaml"), callerFiles["agent.yaml"]+"model: m\n"+agent)
		o.Models = models.Models{Gateway: newModelGateway(t, double, o), Transcript: true}
	}
	return &modelWorld{newCallFixture(t, append([]func(*settings){with}, change...)...), double}
}

// catalog has a model m, of which a million tokens cost 1, at the double.
func (d *modelDouble) catalog() catalog.Catalog {
	return catalog.Catalog{
		Providers: map[string]catalog.Provider{"p": {Kind: catalog.Compatible, BaseURL: d.URL, Key: "double", AnyField: true, Dialects: catalog.Dialects()}},
		Models: map[string]catalog.Model{"m": {
			Use: []catalog.Use{{Provider: "p", Model: "up"}}, MaxOutput: 100, Price: &catalog.Price{Input: 1e9, Cached: 1e9, CacheWrite: 1e9, Output: 1e9},
		}},
	}
}

func newModelGateway(t *testing.T, double *modelDouble, o *settings) *gateway.Gateway {
	t.Helper()
	keys := t.TempDir()
	if err := os.WriteFile(filepath.Join(keys, "double"), []byte(modelCanary), 0o600); err != nil {
		t.Fatal(err)
	}
	gw, err := gateway.New(double.catalog(), gateway.Options{Key: secrets.Files{Dir: keys}.Read, Backoff: time.Millisecond, Logger: o.Logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gw.Close)
	return gw
}

// told returns the statuses of the answers to a mark, sorted.
func (w *modelWorld) told(mark string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var statuses []string
	for _, answer := range w.answers[mark] {
		status, _, _ := strings.Cut(answer, " ")
		statuses = append(statuses, status)
	}
	slices.Sort(statuses)
	return statuses
}

func asks(n int) []modelAsk { return make([]modelAsk, n) }

func times(status string, n int) []string { return slices.Repeat([]string{status}, n) }

// models is the feature of the service that is there now.
func (w *modelWorld) models() *models.Feature {
	found, _ := FeatureOf[*models.Feature](w.service)
	return found
}
