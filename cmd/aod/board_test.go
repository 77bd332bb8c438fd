package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/client"
)

const grafana = "../../examples/grafana"

// Each query of the board has an answer by a Prometheus that reads a server which does what the
// query asks for, and each alert is evaluated there. `make long` has Debian's Prometheus.
func TestTheBoardIsAnsweredByALiveServer(t *testing.T) {
	program := findPrometheus(t)
	s := newBusy(t)
	s.start()
	p := startPrometheus(t, program, s.address, s.aod("token", "add", "prometheus", "--scope", "metrics"))
	t.Run("which hears of the very first refusals", func(t *testing.T) {
		p.await("up{job=\"aod\"} == 1")
		p.await(`aod_runs_refused_total{unit="worker"} == 0`)
		s.refuseSome()
		p.await(`ALERTS{alertname="AODRunsRefused",alertstate="firing",unit="worker"}`)
	})
	stop := s.beBusy()
	defer stop()
	defer s.talk()()
	for _, q := range boardQueries(t) {
		t.Run(q.title+", "+q.legend, func(t *testing.T) { t.Logf("%s gives %s", q.expr, p.await(q.expr)) })
	}
	p.judgeRules()
}

// boardQuery is one of the board, with what Grafana fills in.
type boardQuery struct{ title, legend, expr string }

func boardQueries(t *testing.T) (all []boardQuery) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(grafana, "aod.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m")
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			all = append(all, boardQuery{panel.Title, target.LegendFormat, filled.Replace(target.Expr)})
		}
	}
	if len(all) < 10 {
		t.Fatalf("the board has %d queries", len(all))
	}
	return all
}

// busy is a server whose runs succeed and fail, are refused and tried again, and ask models and people.
type busy struct{ *server }

func newBusy(t *testing.T) busy {
	provider := newSlowProvider(t)
	s := newThinker(t, provider)
	s.addWorker("worker", "")
	s.addFlow("asker", "", asksNobody)
	s.addRemote("far", newFailing(t).URL, "")
	raw, err := os.ReadFile(filepath.Join(s.data, "server.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, string(raw)+"unit: {worker: {queue: 1, warm: 1}}\n", s.data, "server.yaml")
	s.flags = append(s.flags, "--pool", "2", "--retry-delay", "10ms")
	return busy{s}
}

const asksNobody = "start: q\nnodes:\n  q: {ask: 'Well?', next: {approve: end, reject: end}}\n"

// talk has a question open, a stream, and a session of a client of MCP, until it is ended; and there is a backup.
func (s busy) talk() (end func()) {
	s.t.Helper()
	id := s.call("asker", `{}`)
	s.question(id)
	ctx, stop := context.WithCancel(context.Background())
	stream, err := s.get(ctx, "/v1/runs/"+id+"/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	hello, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url()+"/mcp", strings.NewReader(mcpHello))
	if err != nil {
		s.t.Fatal(err)
	}
	hello.Header = http.Header{"Authorization": {"Bearer " + s.token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if answer, err := s.web.Do(hello); err != nil || answer.StatusCode != http.StatusOK || answer.Body.Close() != nil {
		s.t.Fatal(answer, err)
	}
	s.mustDo("backup", filepath.Join(s.t.TempDir(), "backup"))
	return func() {
		stop()
		stream.Body.Close()
		if _, err := s.client.Runs.Cancel(context.Background(), id, ""); err != nil {
			s.t.Error(err)
		}
	}
}

// newFailing is an agent elsewhere that fails every other time.
func newFailing(t *testing.T) *httptest.Server {
	var mu sync.Mutex
	fails := false
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if fails = !fails; fails {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var request struct {
			ID string `json:"request_id"`
		}
		_ = json.NewDecoder(r.Body).Decode(&request) // it is AOD's
		fmt.Fprintf(w, `{"request_id":%q,"ok":true,"outputs":{}}`, request.ID)
	}))
	t.Cleanup(agent.Close)
	return agent
}

// refuseSome has more runs of the worker asked for than may wait.
func (s busy) refuseSome() {
	s.t.Helper()
	var ids []string
	for refused := 0; refused < 2; {
		record, err := s.client.Runs.Submit(s.t.Context(), client.Submission{Unit: "worker", Input: work{Ticks: 10}.input()})
		if err != nil {
			refused++
			continue
		}
		ids = append(ids, record.ID)
	}
	for _, id := range ids {
		s.await(id)
	}
}

// beBusy has runs made until it is stopped.
func (s busy) beBusy() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for unit, input := range map[string]string{"thinker": `{}`, "far": `{}`, "worker": `{"ticks":5}`} {
		for range 4 { // as many as fill the queue
			all.Go(func() { s.repeat(ctx, unit, input) })
		}
	}
	all.Go(func() { s.repeat(ctx, "worker", `{"exit":3}`) })
	return func() {
		cancel()
		all.Wait()
		s.rest()
	}
}

// repeat has runs of a unit made, one after the other.
func (s busy) repeat(ctx context.Context, unit, input string) {
	for ctx.Err() == nil {
		_, err := s.client.Runs.Submit(ctx, client.Submission{Unit: unit, Input: json.RawMessage(input), Wait: patienceTime / 2})
		if err == nil {
			continue
		}
		select { // it was refused
		case <-time.After(loadPause):
		case <-ctx.Done():
		}
	}
}
