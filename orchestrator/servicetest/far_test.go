package servicetest_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/orchestrator/worker"
)

// farHome is the home of the worker, in that of the server: a moment has both.
const farHome = "far"

// far gives each Service no sandboxes of its own, and beside it a worker with the harness' engine. Both end together.
func far(t testing.TB, s *servicetest.Settings) {
	t.Helper()
	r := &road{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	s.Opening = func(s *servicetest.Settings) {
		s.Containers.Elsewhere = true
		s.Features = append(slices.Clone(s.Features), workers.New(workers.Options{
			Credentials: credentials(s.Home), Elsewhere: true, Version: "v1",
		}))
	}
	s.Beside = func(h *servicetest.Harness) (end func()) {
		h.Helper()
		machines, _ := orchestrator.FeatureOf[*workers.Feature](h.Service)
		r.leads.Store(&lane{tokens: credentials(h.Settings.Home), to: machines.Handler()})
		leave := work(h, machines, server.URL)
		return func() {
			leave()
			r.leads.Store(nil)
			server.CloseClientConnections()
			r.asked.Lock() // what still answers writes into the home, which is another one soon
			defer r.asked.Unlock()
		}
	}
}

func credentials(home string) *access.Tokens {
	return access.NewTokens(filepath.Join(home, layout.Tokens))
}

// work has a worker take runs, which has joined when there is none yet.
func work(h *servicetest.Harness, machines *workers.Feature, url string) (leave func()) {
	h.Helper()
	home, logger := filepath.Join(h.Settings.Home, farHome), cmp.Or(h.Settings.Logger, slog.New(slog.DiscardHandler))
	_, err := worker.ReadMembership(home)
	if fault.Is(err, fault.NotFound) {
		invited := worker.Invitation{}
		if invited.WorkerJoin, err = machines.Add(context.Background(), "far"); err == nil {
			invited.Server = url
			err = worker.Join(context.Background(), home, invited, logger)
		}
	}
	if err != nil {
		h.Fatal(err)
	}
	w, err := worker.New(worker.Options{
		Home: home, Kind: container.New(h.Engine, container.Options{}), Version: "v1", Slots: 4, MemoryBytes: 1 << 40,
		Labels: []string{"arch=amd64", "os=linux"}, Door: egress.New(egress.Options{}), Logger: logger,
	})
	if err != nil {
		h.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() {
		stop()
		<-ended // by us
		if err := w.Close(); err != nil {
			h.Error(err)
		}
	}
}

// road leads to the Service of the moment.
type road struct {
	leads atomic.Pointer[lane]
	asked sync.RWMutex // shared by requests
}

// lane answers those who bear a token of a worker.
type lane struct {
	tokens *access.Tokens
	to     http.Handler
}

func (r *road) ServeHTTP(w http.ResponseWriter, asked *http.Request) {
	r.asked.RLock()
	defer r.asked.RUnlock()
	l := r.leads.Load()
	if l == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	token := strings.TrimPrefix(asked.Header.Get("Authorization"), "Bearer ")
	grant, known, err := l.tokens.Find(sha256.Sum256([]byte(token)))
	if !known || err != nil {
		_ = httpwire.ReplyProblem(w, httpwire.ProblemOf(fault.New(fault.Unauthorized, "no worker"))) // it has gone
		return
	}
	l.to.ServeHTTP(w, asked.WithContext(access.WithGrant(asked.Context(), grant)))
}
