package servicetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// serve is a server elsewhere. A request that it doesn't answer ends with its client.
func serve(t testing.TB, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server
}

// held is a request that waits for a gate. It returns false if its client goes away before.
func held(r *http.Request, gate <-chan struct{}) bool {
	_, _ = io.Copy(io.Discard, r.Body) // else nobody sees the client go
	return await(r.Context(), gate)
}

// tell has somebody know who waits, or will.
func tell(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// modelScene has a run that asked a model and a service, and waits for a second answer of the model.
func modelScene(t testing.TB) *scene {
	gate, s, asking, goOn := make(chan struct{}), &scene{}, make(chan struct{}, 1), make(chan struct{})
	provider := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "second") {
			tell(asking)
			if !held(r, gate) {
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","choices":[{"message":{"content":"Blue."}}],`+
			`"usage":{"prompt_tokens":7,"completion_tokens":3}}`)
	})
	service := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "4 degrees") })
	ask := func(ctx context.Context, box servicetest.Sandbox) int {
		body := func(text string) []byte {
			message := map[string]string{"role": "user", "content": text}
			return servicetest.JSON(map[string]any{"model": "m", "messages": []any{message}})
		}
		if !s.found.Load() {
			<-goOn // else it may ask before it is stored that it runs
			box.Ask(ctx, "POST", "/v1/chat/completions", "", body("first"))
			<-goOn
			box.Ask(ctx, "GET", "/upstream/weather/forecast", "", nil)
			<-goOn
		}
		answer := box.Ask(ctx, "POST", "/v1/chat/completions", "", body("second"))
		status, _, _ := strings.Cut(answer, " ")
		box.Output(map[string]string{"status": status})
		return 0
	}
	s.options = []servicetest.Option{
		servicetest.Capsule("asks", "model: m\nupstreams: [weather]\n", servicetest.AnyContract, ask),
		func(t testing.TB, o *servicetest.Settings) {
			t.Helper()
			o.Models = models.Models{Gateway: gatewayTo(t, provider.URL), Transcript: true}
			var err error
			table := upstream.Table{"weather": {URL: service.URL, Methods: []string{"GET"}}}
			if o.Upstreams, err = upstream.New(table, upstream.Options{}); err != nil {
				t.Fatal(err)
			}
		},
	}
	s.begin = func(h *servicetest.Harness) {
		id := h.Submit("asks", map[string]any{})
		h.Until(id, servicetest.Running)
		goOn <- struct{}{}
		for _, told := range []api.EventType{api.EventModel, api.EventUpstream} { // noted soon after the answer
			h.Within("an event", func() bool { return hasEvent(h, id, told) })
			goOn <- struct{}{}
		}
		<-asking
	}
	s.goOn = func(*servicetest.Harness) {
		close(goOn)
		close(gate)
	}
	return s
}

func hasEvent(h *servicetest.Harness, id string, kind api.EventType) bool {
	h.Helper()
	for event, err := range h.Service.Feed.Past(access.WithServer(context.Background()), id, 0) {
		if err != nil {
			h.Fatal(err)
		}
		if event.Type == kind {
			return true
		}
	}
	return false
}

// gatewayTo has a model m, of which a million tokens cost 1.
func gatewayTo(t testing.TB, url string) *gateway.Gateway {
	t.Helper()
	keys := t.TempDir()
	if err := os.WriteFile(filepath.Join(keys, "key"), []byte("sk-canary-0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	price := &catalog.Price{Input: 1e9, Cached: 1e9, CacheWrite: 1e9, Output: 1e9}
	models := catalog.Catalog{
		Providers: map[string]catalog.Provider{
			"p": {Kind: catalog.Compatible, BaseURL: url, Key: "key", AnyField: true, Dialects: catalog.Dialects()},
		},
		Models: map[string]catalog.Model{
			"m": {Use: []catalog.Use{{Provider: "p", Model: "up"}}, MaxOutput: 100, Price: price},
		},
	}
	made, err := gateway.New(models, gateway.Options{Key: secrets.Files{Dir: keys}.Read, Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

func pushesOf(h *servicetest.Harness) *pushes.Feature {
	feature, _ := orchestrator.FeatureOf[*pushes.Feature](h.Service)
	return feature
}

// backlog is what receivers still have to be told.
func backlog(h *servicetest.Harness) (int64, error) {
	return pushesOf(h).PushBacklog(access.WithServer(context.Background()))
}

// pushScene has a receiver that is told nothing before the process ends, and then all.
func pushScene(t testing.TB) *scene {
	gate, s := make(chan struct{}), &scene{}
	receiver := serve(t, func(w http.ResponseWriter, r *http.Request) { held(r, gate) })
	url := strings.Replace(receiver.URL, "127.0.0.1", "hook.example", 1)
	s.plain = map[string]string{url: "<hook>"}
	s.options = []servicetest.Option{servicetest.Set(func(o *servicetest.Settings) {
		private := []outside.Exception{{Host: "hook.example", Addr: netip.MustParseAddr("127.0.0.1")}}
		o.Pushes = pushes.Options{
			Door: egress.New(egress.Options{Private: private}), Delay: time.Millisecond, Timeout: testkit.Patience,
		}
		o.Render = func(_ context.Context, run string, e api.Event) ([]byte, string, error) {
			body, err := json.Marshal(map[string]any{"run": run, "event": e})
			return body, "application/json", err
		}
	})}
	s.begin = func(h *servicetest.Harness) {
		ctx := pushesOf(h).WithTargets(access.WithServer(context.Background()),
			[]api.PushConfig{{ID: "p", URL: url, Token: "token", Scheme: "Bearer", Credentials: "credentials"}})
		record, _, err := h.Service.Submit(ctx, spool.Submission{
			Unit: "worker", Input: servicetest.JSON(servicetest.Orders{Mark: "told", Until: "gate"}),
		})
		if err != nil {
			h.Fatal(err)
		}
		h.Until(record.ID, servicetest.Running)
	}
	s.goOn = func(h *servicetest.Harness) {
		close(gate)
		h.OpenGate("gate")
		over(h, "worker")
		h.Within("all is told", func() bool {
			n, err := backlog(h)
			return err == nil && n == 0
		})
	}
	return s
}

const farSchema = `{
  "input": {"type": "object", "properties": {"message": {"type": "string"}}},
  "output": {"type": "object", "properties": {"text": {"type": "string"}, "words": {"type": "integer"}}}
}`

// remoteScene has a run of an agent that speaks the agent HTTP contract, and one of an agent that speaks
// A2A, both of which wait for their agents.
func remoteScene(t testing.TB) *scene {
	gate, s, asked, known := make(chan struct{}), &scene{}, make(chan struct{}, 1), keptTask{}
	words := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		asking, err := agenthttp.ParseRequest(raw)
		if err != nil {
			http.Error(w, "no request of the contract", http.StatusBadRequest)
			return
		}
		tell(asked)
		if held(r, gate) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"request_id":%q,"task_type":%q,"status":"ok","outputs":{"words":3}}`,
				asking.RequestID, asking.TaskType)
		}
	})
	s.dies = "the agent may do the task" // it isn't asked twice
	peer := peertest.New(t, peertest.Forms[0], true)
	s.plain = map[string]string{words.URL: "<words>", peer.URL: "<peer>"}
	remote := func(name, url, more string) servicetest.Option {
		return servicetest.Unit(name, map[string]string{
			"agent.yaml": "name: " + name + "\nkind: remote\nremote:\n  url: " + url + "\n" + more, "schema.json": farSchema,
		})
	}
	s.options = []servicetest.Option{
		remote("words", words.URL, "  risk_tier: low\n"), remote("peer", peer.URL, "  protocol: a2a\n"),
	}
	s.begin = func(h *servicetest.Harness) {
		h.Submit("words", map[string]string{"message": "a b c"})
		<-asked
		id := h.Submit("peer", map[string]string{"message": "wait"})
		h.Within("it is at it", func() bool { return hasEvent(h, id, api.EventProgress) })
	}
	s.learn = func(h *servicetest.Harness) {
		for _, row := range readRows(h)["runs"] {
			if task := taskIn(h, row["private"]); task.Task != "" {
				known, s.plain[task.Task], s.plain[task.Context] = task, "<task>", "<context>"
			}
		}
		if known.Task == "" {
			h.Fatal("no task is stored")
		}
		for _, unit := range []string{"words", "peer"} {
			raw, err := os.ReadFile(filepath.Join(h.Settings.Home, "units", unit, "current"))
			if err != nil {
				h.Fatal(err)
			}
			digest := strings.TrimSpace(string(raw))
			s.plain[digest], s.plain[digest[:16]] = "<digest "+unit+">", "<version "+unit+">"
		}
	}
	s.meanwhile = func(h *servicetest.Harness) {
		close(peer.Release)
		h.Within("the task is over", func() bool { return strings.Contains(toldOf(h, peer.URL, known.Task), "COMPLETED") })
	}
	s.goOn = func(*servicetest.Harness) { close(gate) }
	return s
}

// toldOf is what an agent tells of a task.
func toldOf(h *servicetest.Harness, url, task string) string {
	h.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":%q}}`, task)
	request, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "A2A-Version": "1.0"} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		h.Fatal(err)
	}
	defer response.Body.Close()
	told, err := io.ReadAll(response.Body)
	if err != nil {
		h.Fatal(err)
	}
	return string(told)
}

// keptTask is what is stored of a task at an agent elsewhere.
type keptTask struct{ Task, Context string }

func taskIn(t testing.TB, private any) keptTask {
	t.Helper()
	var stored struct{ Kind keptTask }
	if err := json.Unmarshal(servicetest.JSON(private), &stored); err != nil {
		t.Fatal(err)
	}
	return stored.Kind
}

// scheduleScene has a schedule with a file. A run of it goes on, and another one waits for that.
func scheduleScene(testing.TB) *scene {
	s := &scene{}
	until := time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC)
	const graph = "start: a\nnodes:\n  a: {run: worker, with: {mark: other}}\n"
	s.options = []servicetest.Option{servicetest.Flow("other", "", graph)}
	s.begin = func(h *servicetest.Harness) {
		spec := api.ScheduleSpec{
			Unit: "worker", Input: servicetest.JSON(servicetest.Orders{Mark: "due", Until: "gate"}),
			Metadata: map[string]string{"user_id": "ada"}, Timeout: "1h", Ask: true, Note: "nightly",
			Cron: "0 3 1 1 *", Timezone: "Europe/Berlin", Missed: api.MissedSkip, Grace: "2h",
			Overlap: api.OverlapQueue, Jitter: "1m", Until: &until, Count: 9,
		}
		of, _ := orchestrator.FeatureOf[*schedules.Scheduler](h.Service)
		ctx := access.WithGrant(context.Background(), access.Grant{Name: "ci", Scopes: []access.Scope{access.Read, access.Run}})
		if _, _, err := of.Put(ctx, "one", spec, spoolOf(h, "doc", "in.txt", "content")); err != nil {
			h.Fatal(err)
		}
		first, err := of.Begin(access.WithServer(context.Background()), "one")
		if err != nil {
			h.Fatal(err)
		}
		h.Until(first.ID, servicetest.Running)
		every := api.ScheduleSpec{Unit: "worker", Every: "24h"}
		if _, _, err := of.Put(access.WithServer(context.Background()), "two", every, nil); err != nil {
			h.Fatal(err)
		}
		if _, err := of.Pause(access.WithServer(context.Background()), "two", true); err != nil {
			h.Fatal(err)
		}
		if _, err := h.Service.Units.Disable(access.WithServer(context.Background()), "other"); err != nil {
			h.Fatal(err)
		}
	}
	s.goOn = func(h *servicetest.Harness) { h.OpenGate("gate") }
	return s
}

// poolScene has a run in a sandbox that waited for it.
func poolScene(testing.TB) *scene {
	gate, s := make(chan struct{}), &scene{}
	warm := func(ctx context.Context, box servicetest.Sandbox) int {
		if !s.found.Load() && box.Ask(ctx, "GET", "/invocation", "", nil) == "" {
			return 137
		}
		_, _ = fmt.Fprintln(box.Stdout, "at it")
		if !await(ctx, gate) {
			return 137
		}
		box.Output(map[string]string{"mark": "warm"})
		return 0
	}
	s.options = []servicetest.Option{
		servicetest.Capsule("warm", "warm: 1\n", servicetest.AnyContract, warm),
		servicetest.Set(func(o *servicetest.Settings) { o.Containers.Pool.Size = 1 }),
	}
	s.begin = func(h *servicetest.Harness) {
		h.Within("a sandbox waits", func() bool {
			units := h.Service.Figures.Pool().Units
			return len(units) > 0 && len(units[0].Waiting) == 1
		})
		h.Containers.Pool().Pause("warm", time.Now().Add(time.Hour))
		logged(h, h.Submit("warm", map[string]string{"mark": "warm"}))
	}
	s.goOn = func(h *servicetest.Harness) {
		h.Containers.Pool().Pause("warm", time.Now().Add(time.Hour))
		close(gate)
	}
	return s
}
