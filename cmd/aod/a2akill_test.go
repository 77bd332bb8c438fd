package main

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// a2aClients are there of most kinds.
const a2aClients = 10

// Clients that wait, follow streams, answer questions and hear of pushes lose no task and have none
// twice, whenever the server is killed, and no agent elsewhere is asked for anything twice. It is run by:
// AOD_KILLS=20 go test -race -run TestNoKillLosesOrDoublesATaskOfA2A ./cmd/aod
func TestNoKillLosesOrDoublesATaskOfA2A(t *testing.T) {
	t.Parallel()
	onlyLong(t, "AOD_KILLS")
	seed := number(t, "AOD_SEED", int(time.Now().UnixNano()%1e9))
	kills := number(t, "AOD_KILLS", 0)
	t.Logf("to be repeated with AOD_SEED=%d AOD_KILLS=%d", seed, kills)
	k := newA2AKilling(t, rand.New(rand.NewPCG(uint64(seed), 19)))
	k.start()
	for kind, work := range k.kinds() {
		for range cmp.Or(work.clients, a2aClients) {
			k.clients.Go(func() { k.customer(kind, work.do) })
		}
	}
	testkit.Eventually(t, "each client has its task", func() bool { return len(k.active()) >= 4*a2aClients })
	for round := range kills {
		if round%4 != 3 { // else it is killed while it begins
			k.ready()
			k.awaitEnds(k.dice.Int64N(2 * a2aClients))
		}
		time.Sleep(time.Duration(k.dice.Int64N(int64(500 * time.Millisecond)))) // what is tested are random moments
		k.kill()
		k.kills.Add(1)
		k.begin()
	}
	k.ready()
	close(k.far.Release)
	close(k.over)
	k.clients.Wait()
	k.judge()
	t.Logf("%d kills\n%s", kills, k.report())
}

// awaitEnds returns when so many tasks have ended since it was called.
func (k *a2aKilling) awaitEnds(n int64) {
	k.t.Helper()
	before := k.ended.Load()
	testkit.Eventually(k.t, "tasks end", func() bool { return k.ended.Load() >= before+n })
}

// a2aKilling is a server that is killed while clients have tasks of it.
type a2aKilling struct {
	*server
	dice    *rand.Rand
	far     *peertest.Agent
	over    chan struct{} // closed when no client begins another task
	clients sync.WaitGroup
	kills   atomic.Int64
	ended   atomic.Int64 // orders
	hooks   string       // where receivers listen

	mu     sync.Mutex
	orders []*a2aOrder
	heard  map[string]*receiver // by their paths
}

// a2aOrder is a task that a client wants, and what came of it.
type a2aOrder struct {
	kind   string
	mark   int
	run    string // "": not known yet
	unit   string
	resent int // times that it was asked for again
	met    int // kills between its beginning and its end
	err    error

	unheard bool // nobody knows whether the agent elsewhere has its message
}

func newA2AKilling(t *testing.T, dice *rand.Rand) *a2aKilling {
	config := filepath.Join(t.TempDir(), "aod.yaml")
	write(t, "a2a: {push_private: [hook.example=127.0.0.1]}\n", config)
	k := &a2aKilling{
		server: newServer(t, "--config", config, "--concurrency", "16", "--retry-delay", "100ms"), dice: dice,
		far: peertest.New(t, peertest.Forms[0], true), over: make(chan struct{}), heard: map[string]*receiver{},
	}
	hooks := httptest.NewServer(k)
	t.Cleanup(hooks.Close)
	_, port, _ := net.SplitHostPort(hooks.Listener.Addr().String())
	k.hooks = "http://hook.example:" + port
	k.addWorker("worker", "")
	k.addCaller("person", personScript)
	writeA2A(t, filepath.Join(k.units, "far"), k.far.URL, "limits: {timeout: 30m}\n")
	writeA2A(t, filepath.Join(k.units, "far-stream"), k.far.URL, "  stream: true\nlimits: {timeout: 30m}\n")
	return k
}

// ServeHTTP implements http.Handler for all receivers.
func (k *a2aKilling) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.receiver(r.URL.Path).ServeHTTP(w, r)
}

func (k *a2aKilling) receiver(path string) *receiver {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.heard[path] == nil {
		k.heard[path] = &receiver{}
	}
	return k.heard[path]
}

// customer has tasks of one kind, one after another.
func (k *a2aKilling) customer(kind string, do func(context.Context, *a2aOrder) error) {
	ctx, stop := context.WithTimeout(context.Background(), 20*patienceTime)
	defer stop()
	for first := true; first || !isClosed(k.over); first = false {
		o := k.order(kind)
		before := k.kills.Load()
		o.err = do(ctx, o)
		o.met = int(k.kills.Load() - before)
		k.ended.Add(1)
		if o.err != nil {
			return
		}
	}
}

func (k *a2aKilling) order(kind string) *a2aOrder {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := &a2aOrder{kind: kind, mark: len(k.orders) + 1}
	k.orders = append(k.orders, o)
	return o
}

// judge holds the runs against what was ordered.
func (k *a2aKilling) judge() {
	k.t.Helper()
	runs := map[string]*a2aOrder{}
	for _, o := range k.orders {
		if o.err == nil {
			o.err = k.compare(o)
		}
		if o.err != nil {
			k.t.Errorf("task %d, a %s one, run %s: %v", o.mark, o.kind, o.run, o.err)
		}
		if other := runs[o.run]; other != nil && o.run != "" {
			k.t.Errorf("tasks %d and %d are run %s", o.mark, other.mark, o.run)
		}
		runs[o.run] = o
	}
	for run, err := range k.client.Runs.List(context.Background(), api.Filter{}) {
		if err != nil || runs[run.ID] == nil {
			k.t.Errorf("nobody has asked for run %s of %s: %v", run.ID, run.Unit, err)
		}
	}
	asked := map[string]int{}
	for _, m := range k.far.Messages() {
		if asked[m.ID]++; asked[m.ID] > 1 {
			k.t.Errorf("the agent elsewhere was sent message %s %d times", m.ID, asked[m.ID])
		}
	}
}
