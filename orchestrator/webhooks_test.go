package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

func (w *fixture) webhooks() *webhooks.Feature {
	found, _ := FeatureOf[*webhooks.Feature](w.service)
	return found
}

// hooked is a receiver of webhooks of the test's own, which remembers what it was told by its paths.
type hooked struct {
	*httptest.Server
	mu    sync.Mutex
	heard map[string][]hookedEvent
	ids   map[string]int // how often a message came, by its id
	hold  chan struct{}  // requests are answered when it is closed; nil: at once
}

type hookedEvent struct {
	Type string
	Data struct {
		Run, Root, Unit, Question, Path string
		State                           string
		Owner                           api.Owner
		Approvers                       []string
	}
}

func newHooked(t *testing.T) *hooked {
	h := &hooked{heard: map[string][]hookedEvent{}, ids: map[string]int{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var event hookedEvent
		if err == nil {
			err = json.Unmarshal(raw, &event)
		}
		if err != nil || strings.Contains(string(raw), "canary") || r.Header.Get("webhook-signature") == "" {
			t.Errorf("%v: %s", err, raw)
		}
		h.mu.Lock()
		hold := h.hold
		h.heard[r.URL.Path] = append(h.heard[r.URL.Path], event)
		h.ids[r.Header.Get("webhook-id")]++
		h.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// told returns what was heard at a path, sorted: the types with what names says.
func (h *hooked) told(path string, names map[string]string) (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.heard[path] {
		all = append(all, names[e.Data.Run]+" "+e.Type)
	}
	slices.Sort(all)
	return all
}

func (h *hooked) at(path string) api.WebhookRequest {
	_, port, _ := net.SplitHostPort(h.Listener.Addr().String())
	return api.WebhookRequest{URL: "http://canary-hook.example:" + port + path}
}

// adds makes a webhook.
func (w *fixture) adds(ctx context.Context, r api.WebhookRequest) api.Webhook {
	w.t.Helper()
	made, err := w.webhooks().Add(ctx, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

func ofTeam(t *testing.T, name, team string, scopes ...access.Scope) context.Context {
	return access.WithGrant(t.Context(), access.Grant{Name: name, Scopes: scopes, Teams: []string{team}})
}

func TestAWebhookTellsWhatItsMakerMaySee(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	w := newFlowFixture(t, `
nodes: {ok: {ask: "canary?", approvers: ["token:ada"], next: {approve: end, reject: end}}}
output: {}
`, func(s *settings) { s.Pushes = nearHook() })
	ada, bob := ofTeam(t, "ada", "a", access.Run, access.Read), ofTeam(t, "bob", "a", access.Run)
	eve := ofTeam(t, "eve", "b", access.Admin)
	w.adds(ada, h.at("/ada"))
	bobs := w.adds(bob, h.at("/bob"))
	w.adds(eve, h.at("/eve"))
	names := map[string]string{}
	ids := map[string]string{}
	for name, ctx := range map[string]context.Context{"ada": ada, "bob": bob, "eve": eve} {
		record, _, err := w.service.Submit(ctx, spool.Submission{Unit: "f", Input: encoded(chainInput{})})
		if err != nil {
			t.Fatal(err)
		}
		names[record.ID], ids[name] = name, record.ID
	}
	one := h.at("/one")
	one.Run, one.Events = ids["bob"], []string{api.WebhookRunCancelled}
	w.adds(ada, one)
	asked := func() hookedEvent {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, e := range h.heard["/ada"] {
			if e.Data.Run == ids["bob"] && e.Type == api.WebhookQuestionAsked {
				return e
			}
		}
		return hookedEvent{}
	}
	within(t, func() bool { return asked().Type != "" }, func() string { return "ada hears of no question of bob" })
	e := asked()
	if e.Data.Path != "/v1/questions/"+e.Data.Question || e.Data.Unit != "f" || e.Data.Root != ids["bob"] || e.Data.Owner != (api.Owner{Team: "a", Identity: "token:bob"}) || !slices.Equal(e.Data.Approvers, []string{"token:ada"}) {
		t.Errorf("%+v", e)
	}
	if err := w.service.Questions.Answer(ada, e.Data.Question, api.Answer{Action: "approve"}); err != nil {
		t.Fatal(err)
	}
	w.await(ids["bob"])
	for _, name := range []string{"ada", "eve"} {
		if _, err := w.service.Cancel(trusted.Context(t), ids[name], ""); err != nil {
			t.Fatal(err)
		}
		w.await(ids[name])
	}
	done := []string{"bob question.answered", "bob question.asked", "bob run.completed"}
	want := map[string][]string{
		"/ada": append([]string{"ada question.asked", "ada question.closed", "ada run.cancelled"}, done...), "/bob": done,
		"/eve": {"eve question.asked", "eve question.closed", "eve run.cancelled"}, "/one": nil,
	}
	for path, events := range want {
		within(t, func() bool { return cmp.Equal(h.told(path, names), events) }, func() string { return path + cmp.Diff(events, h.told(path, names)) })
	}
	for name, c := range map[string]struct {
		ctx  context.Context //nolint:containedctx // it is what is tried
		want int
	}{"ada": {ada, 3}, "bob": {bob, 1}, "eve": {eve, 1}, "nobody": {t.Context(), 0}, "the server": {trusted.Context(t), 4}} {
		if page, err := w.webhooks().List(c.ctx, 0, 0); err != nil || len(page.Webhooks) != c.want {
			t.Errorf("%s sees %+v, %v", name, page, err)
		}
	}
	if !bobs.OwnOnly || bobs.Owner.Team != "a" {
		t.Errorf("%+v", bobs)
	}
	if _, err := w.webhooks().Add(eve, api.WebhookRequest{URL: one.URL, Run: ids["ada"]}); err == nil || !strings.Contains(err.Error(), "no run") {
		t.Errorf("for a run of another team: %v", err)
	}
}

func TestWebhooksGoOnAfterARestart(t *testing.T) {
	t.Parallel()
	h, hold := newHooked(t), make(chan struct{})
	h.hold = hold
	w := newTelling(t)
	made := w.adds(trusted.Context(t), h.at("/a"))
	first := w.submit(orders{Mark: "a"})
	w.await(first)
	within(t, func() bool { return len(h.told("/a", nil)) == 1 }, func() string { return "it was told nothing" })
	second := w.submit(orders{Mark: "b"})
	w.await(second)
	w.stop()
	h.mu.Lock()
	h.hold = nil
	h.mu.Unlock()
	close(hold)
	w.start()
	names := map[string]string{first: "1", second: "2"}
	var got api.Webhook
	within(t, func() bool {
		var err error
		if got, err = w.webhooks().Get(trusted.Context(t), made.ID); err != nil {
			t.Fatal(err)
		}
		return got.Deliveries.Delivered == 2
	}, func() string { return fmt.Sprintf("%+v", got) })
	if told := h.told("/a", names); len(told) < 3 || !slices.Equal(slices.Compact(told), []string{"1 run.completed", "2 run.completed"}) || len(h.ids) != 2 {
		t.Errorf("it was told %q by %v", told, h.ids)
	}
}

// Without its secret, as after a restore elsewhere, a webhook says so, and sends nothing.
func TestNothingIsSentWithoutASecret(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	w := newTelling(t, func(s *settings) { s.Pushes.Tries = 2 })
	made := w.adds(trusted.Context(t), h.at("/a"))
	files := filepath.Join(w.opts.Home, layout.Webhooks)
	entries, err := os.ReadDir(files)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode() != 0o600 {
		t.Error(info.Mode(), err)
	}
	stray := filepath.Join(files, "webhook-01999999-aaaa-7bbb-8ccc-dddddddddddd")
	if err := os.WriteFile(stray, []byte(made.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.webhooks().RemoveStrays(trusted.Context(t)); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(files); len(entries) != 1 {
		t.Errorf("%v is left", entries)
	}
	if err := os.Remove(filepath.Join(files, entries[0].Name())); err != nil {
		t.Fatal(err)
	}
	w.await(w.submit(orders{Mark: "a"}))
	var got api.Webhook
	within(t, func() bool {
		got, err = w.webhooks().Get(trusted.Context(t), made.ID)
		return err == nil && got.Deliveries.Lost == 1
	}, func() string { return fmt.Sprintf("%+v, %v", got, err) })
	if got.Outcome != "unmade" || got.State != api.WebhookFailing || len(h.told("/a", nil)) > 0 {
		t.Errorf("%+v, and it was told %v", got, h.told("/a", nil))
	}
	if _, err := w.webhooks().Test(trusted.Context(t), made.ID); err == nil || !strings.Contains(err.Error(), "lost its secret") {
		t.Errorf("its test: %v", err)
	}
}
