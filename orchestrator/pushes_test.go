package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// hook is a receiver of the test's own, which remembers what it was told by its paths.
type hook struct {
	*httptest.Server
	mu    sync.Mutex
	heard map[string][]hookBody
	hold  chan struct{} // requests are answered when it is closed; nil: at once
}

type hookBody struct {
	Run  string
	Seq  int64
	Type api.EventType
}

func renderForHook(_ context.Context, run string, e api.Event) ([]byte, string, error) {
	body, err := json.Marshal(hookBody{run, e.Seq, e.Type})
	return body, "application/json", err
}

func newHook(t *testing.T) *hook {
	h := &hook{heard: map[string][]hookBody{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body hookBody
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		h.mu.Lock()
		hold := h.hold
		h.heard[r.URL.Path] = append(h.heard[r.URL.Path], body)
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

// told returns what was heard at a path.
func (h *hook) told(path string) []hookBody {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.heard[path])
}

func (h *hook) holding(hold chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold = hold
}

func (h *hook) config(id string) api.PushConfig {
	_, port, _ := net.SplitHostPort(h.Listener.Addr().String())
	return api.PushConfig{ID: id, URL: "http://canary-hook.example:" + port + "/" + id, Token: "token-canary", Scheme: "Bearer", Credentials: "credentials-canary"}
}

func nearHook() pushes.Options {
	private := []outside.Exception{{Host: "canary-hook.example", Addr: netip.MustParseAddr("127.0.0.1")}}
	door := egress.New(egress.Options{Private: private})
	return pushes.Options{Door: door, Hooks: door, Delay: time.Millisecond, Timeout: testkit.Patience}
}

// telling is a fixture whose runs tell receivers.
func newTelling(t *testing.T, change ...func(*settings)) *fixture {
	return newFixture(t, append([]func(*settings){func(s *settings) {
		s.Pushes = nearHook()
		s.render = renderForHook
	}}, change...)...)
}

// pushes is the feature of the service that is there now.
func (w *fixture) pushes() *pushes.Feature {
	found, _ := FeatureOf[*pushes.Feature](w.service)
	return found
}

// toTell returns what pushes tell of a run from an event on.
func (w *fixture) toTell(id string, from int64) (all []hookBody) {
	for _, e := range w.events(id, from-1) {
		if slices.Contains([]api.EventType{api.EventState, api.EventMessage, api.EventArtifact, api.EventQuestion, api.EventEnd}, e.Type) {
			all = append(all, hookBody{id, e.Seq, e.Type})
		}
	}
	return all
}

// settled waits until no push of a run has anything to tell.
func (w *fixture) settled(id string) []api.Push {
	w.t.Helper()
	var all []api.Push
	within(w.t, func() bool {
		var err error
		if all, err = w.pushes().Pushes(trusted.Context(w.t), id); err != nil {
			w.t.Fatal(err)
		}
		return !slices.ContainsFunc(all, func(p api.Push) bool { return p.Deliveries.Waiting > 0 })
	}, func() string { return fmt.Sprintf("%+v", all) })
	return all
}

func TestARunTellsItsReceivers(t *testing.T) {
	t.Parallel()
	var log logOf
	h := newHook(t)
	w := newTelling(t, func(s *settings) {
		s.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	record, _, err := w.service.Submit(w.pushes().WithTargets(trusted.Context(t), []api.PushConfig{h.config("a"), h.config("b")}), spool.Submission{Unit: "worker", Input: encoded(orders{Mark: "a", Until: "gate"})})
	if err != nil {
		t.Fatal(err)
	}
	w.until(record.ID, running)
	late, err := w.pushes().CreatePush(trusted.Context(t), record.ID, h.config("late"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.pushes().DeletePush(trusted.Context(t), record.ID, "b"); err != nil {
		t.Fatal(err)
	}
	gone := len(h.told("/b"))
	w.open("gate")
	if r := w.await(record.ID); r.Outcome != api.Success {
		t.Errorf("%s", show(r))
	}
	pushes := w.settled(record.ID)
	want := w.toTell(record.ID, 1)
	if diff := cmp.Diff(want, h.told("/a")); diff != "" {
		t.Error(diff)
	}
	if got := h.told("/late"); len(got) == 0 || len(got) >= len(want) || !slices.Equal(got, want[len(want)-len(got):]) {
		t.Errorf("the late one has heard %v", got)
	}
	if n := len(h.told("/b")); n > gone+1 {
		t.Errorf("the one that was removed has heard %d events, %d of them before", n, gone)
	}
	if len(pushes) != 2 || pushes[1].ID != late.ID || pushes[0].Deliveries.Delivered != int64(len(want)) || pushes[0].Status != 200 || pushes[0].GivenUpAt != nil {
		t.Errorf("%+v", pushes)
	}
	shown, _ := json.Marshal(pushes)
	families, err := w.service.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	metrics := fmt.Sprint(families)
	if !strings.Contains(metrics, "aod_push_deliveries_total") || !strings.Contains(metrics, "aod_push_backlog") || !strings.Contains(log.String(), "delivery made") {
		t.Error("nothing tells of deliveries")
	}
	for what, text := range map[string]string{"metrics": metrics, "log": log.String(), "list": strings.ReplaceAll(string(shown), "canary-hook.example", "")} {
		if strings.Contains(text, "canary") {
			t.Errorf("the %s has what it should not:\n%s", what, text)
		}
	}
}

// logOf is a log that may be read while it is written.
type logOf struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logOf) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logOf) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestPushesGoOnAfterARestart(t *testing.T) {
	t.Parallel()
	h, hold := newHook(t), make(chan struct{})
	h.holding(hold)
	w := newTelling(t)
	record, _, err := w.service.Submit(w.pushes().WithTargets(trusted.Context(t), []api.PushConfig{h.config("a")}), spool.Submission{Unit: "worker", Input: encoded(orders{Mark: "a", Until: "gate"})})
	if err != nil {
		t.Fatal(err)
	}
	w.until(record.ID, running)
	within(t, func() bool { return len(h.told("/a")) == 1 }, func() string { return "it was told nothing" })
	w.stop()
	w.start()
	w.open("gate")
	w.await(record.ID)
	within(t, func() bool { return len(h.told("/a")) >= 2 }, func() string { return "it was told nothing after the restart" })
	h.holding(nil)
	close(hold)
	w.settled(record.ID)
	told := h.told("/a")
	if diff := cmp.Diff(w.toTell(record.ID, 1), slices.Compact(slices.Clone(told))); diff != "" || told[0] != told[1] {
		t.Errorf("%v\n%s", told, diff)
	}
}

func TestADeadReceiverHarmsNoRun(t *testing.T) {
	t.Parallel()
	h := &hook{Server: httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))}
	t.Cleanup(h.Close) // its port would be another's, if it was closed before
	dead := h.config("a")
	w := newTelling(t)
	record, _, err := w.service.Submit(w.pushes().WithTargets(trusted.Context(t), []api.PushConfig{dead}), spool.Submission{Unit: "worker", Input: encoded(orders{Mark: "a"})})
	if err != nil {
		t.Fatal(err)
	}
	if r := w.await(record.ID); r.Outcome != api.Success {
		t.Errorf("%s", show(r))
	}
	all := w.settled(record.ID)
	if p := all[0]; p.Reason != api.PushUnanswered || p.Deliveries.Delivered != 0 || p.Deliveries.Lost == 0 || p.GivenUpAt == nil {
		t.Errorf("%+v", p)
	}
}

func TestAPushIsRefused(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	w := newTelling(t)
	id := w.submit(orders{Mark: "a"})
	w.await(id)
	ctx := trusted.Context(t)
	bad := h.config("a")
	bad.URL = "https://127.0.0.1/canary"
	_, err := w.pushes().CreatePush(ctx, id, bad)
	wantFault(t, err, fault.Input)
	if text := fmt.Sprint(fault.Public(err).Findings, err); !strings.Contains(text, pushes.RulePrivate) || strings.Contains(text, "canary") {
		t.Errorf("the refusal: %s", text)
	}
	before, err := w.service.Runs.List(ctx, api.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = w.service.Submit(w.pushes().WithTargets(ctx, []api.PushConfig{bad}), spool.Submission{Unit: "worker", Input: encoded(orders{Mark: "b"})})
	wantFault(t, err, fault.Input)
	_, _, err = w.service.Submit(w.pushes().WithTargets(ctx, slices.Repeat([]api.PushConfig{h.config("")}, 11)), spool.Submission{Unit: "worker", Input: encoded(orders{Mark: "b"})})
	wantFault(t, err, fault.TooLarge)
	if after, err := w.service.Runs.List(ctx, api.Filter{}); err != nil || len(after.Runs) != len(before.Runs) {
		t.Errorf("a refused submission left a run: %v", err)
	}
	_, err = w.pushes().CreatePush(ctx, "01999999-aaaa-7bbb-8ccc-dddddddddddd", h.config("a"))
	wantFault(t, err, fault.NotFound)
	_, err = w.pushes().Pushes(ctx, "01999999-aaaa-7bbb-8ccc-dddddddddddd")
	wantFault(t, err, fault.NotFound)
	_, err = w.pushes().Push(ctx, id, "a")
	wantFault(t, err, fault.NotFound)
	wantFault(t, w.pushes().DeletePush(ctx, id, "a"), fault.NotFound)
	made, err := w.pushes().CreatePush(ctx, id, h.config(""))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.pushes().CreatePush(ctx, id, h.config("")); err != nil || again.ID != made.ID || made.ID == "" {
		t.Errorf("%+v, then %+v, %v", made, again, err)
	}
	w.pushes().Render(nil)
	_, err = w.pushes().CreatePush(ctx, id, h.config("b"))
	wantFault(t, err, fault.Unsupported)
}

func wantFault(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("the error is %v, want %s", err, kind)
	}
}
