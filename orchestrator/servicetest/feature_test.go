package servicetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// knocks is a feature that lives here alone: programs knock, each time with a key, and hear how many
// knocks there were.
type knocks struct {
	events interface {
		List(ctx context.Context, run string, after int64, limit int) ([]store.Event, error)
	}
	mu     sync.Mutex
	called map[string][]string // methods in their order, by unit
}

// knock is what it tells.
type knock struct {
	Key string `json:"key"`
}

// EventType implements api.EventData.
func (knock) EventType() api.EventType { return "knock" }

func (k *knocks) note(r *run.Run, method string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.called == nil {
		k.called = map[string][]string{}
	}
	k.called[r.Record.Unit] = append(k.called[r.Record.Unit], method)
}

// Init implements feature.Initializer.
func (k *knocks) Init(p feature.Process) error {
	k.events = p.Store.Events
	return nil
}

// Join implements feature.Feature.
func (k *knocks) Join(_ context.Context, r *run.Run, caller feature.Part) feature.Part {
	k.note(r, fmt.Sprintf("join, called by another: %v", caller != nil))
	return &knockPart{feature: k, run: r, keys: map[string]bool{}}
}

// Restore implements feature.Restorer.
func (k *knocks) Restore(ctx context.Context, parts []feature.Part, _ feature.Ancestry) error {
	for _, part := range parts {
		p := part.(*knockPart)
		events, err := k.events.List(ctx, p.run.ID, 0, 1000)
		if err != nil {
			return err
		}
		for _, e := range events {
			var told knock
			if e.Type == string(told.EventType()) && json.Unmarshal(e.Data, &told) == nil {
				p.keys[told.Key] = true
			}
		}
	}
	return nil
}

type knockPart struct {
	feature *knocks
	run     *run.Run
	mu      sync.Mutex
	keys    map[string]bool
}

func (p *knockPart) Open() { p.feature.note(p.run, "open") }

func (p *knockPart) Prepare(context.Context) ([]store.WithRun, error) { return nil, nil }

func (p *knockPart) Begin() []api.EventData { return nil }

func (p *knockPart) Mounts(feature.Slot) []capsuleapi.Mount {
	p.feature.note(p.run, "mounts")
	return []capsuleapi.Mount{{Path: "/knock", New: func(*handoff.Broker) http.Handler { return http.HandlerFunc(p.serve) }}}
}

func (p *knockPart) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key := r.Header.Get("Idempotency-Key"); !p.keys[key] {
		p.keys[key] = true
		p.run.Tell(run.Event{Data: knock{key}})
	}
	_, _ = fmt.Fprintf(w, "%d", len(p.keys))
}

func (p *knockPart) Note() { p.feature.note(p.run, "note") }

func (p *knockPart) Again() { p.feature.note(p.run, "again") }

func (p *knockPart) Conclude() {
	p.feature.note(p.run, "conclude")
	p.run.Warn("%d knocks", len(p.keys))
}

func (p *knockPart) Close() { p.feature.note(p.run, "close") }

// knocking knocks twice, and has what it heard as its result.
func knocking(ctx context.Context, box servicetest.Sandbox) int {
	box.Ask(ctx, "POST", "/knock", "one", nil)
	box.Output(map[string]string{"heard": box.Ask(ctx, "POST", "/knock", "two", nil)})
	return 0
}

// featureScene has a run of a flow whose step knocks.
func featureScene(testing.TB) *scene {
	return &scene{
		options: []servicetest.Option{
			servicetest.Capsule("knocks", "", servicetest.AnyContract, knocking),
			servicetest.Flow("calls", "", "start: a\nnodes:\n  a: {run: knocks, set: {heard: \"${{ out.heard }}\"}, action: done}\n"+
				"output: {heard: \"${{ state.heard }}\"}\n"),
			servicetest.Set(func(s *servicetest.Settings) { s.Features = []feature.Feature{&knocks{}} }),
		},
		begin: func(h *servicetest.Harness) { h.Await(h.Submit("calls", map[string]any{})) },
		goOn:  func(*servicetest.Harness) {},
	}
}

func TestAFeatureTakesPartInRuns(t *testing.T) {
	t.Parallel()
	s, knocked := featureScene(t), &knocks{}
	h := servicetest.New(t, append(s.options, servicetest.Set(func(s *servicetest.Settings) { s.Features = []feature.Feature{knocked} }))...)
	root := h.Await(h.Submit("calls", map[string]any{}))
	if string(root.Output) != `{"heard":"200 2"}` {
		t.Errorf("record %s", servicetest.JSON(root))
	}
	page, err := h.Service.Runs.List(trusted.Context(t), api.Filter{Unit: "knocks"})
	if err != nil || len(page.Runs) != 1 {
		t.Fatal(page, err)
	}
	callee := h.Until(page.Runs[0].ID, run.Over)
	if !slices.Contains(callee.Warnings, "2 knocks") {
		t.Errorf("warnings %q", callee.Warnings)
	}
	var told []string
	for e, err := range h.Service.Feed.Past(trusted.Context(t), callee.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == "knock" {
			told = append(told, string(e.Data))
		}
	}
	if diff := cmp.Diff([]string{`{"key":"one"}`, `{"key":"two"}`}, told); diff != "" {
		t.Error(diff)
	}
	h.Stop()
	for unit, want := range map[string]string{
		"calls":  "join, called by another: false, open, note, conclude, note, close",
		"knocks": "join, called by another: true, open, note, mounts, note, conclude, note, close",
	} {
		if called := strings.Join(slices.Compact(knocked.called[unit]), ", "); called != want {
			t.Errorf("%s: %s", unit, called)
		}
	}
}
