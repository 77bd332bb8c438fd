package schedules

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// host leads runs that do nothing until their test ends them. It is a clock, too.
type host struct {
	feature.Gate
	feature.Submissions
	store     *store.Store
	scheduler *Scheduler
	rings     chan time.Time

	mu      sync.Mutex
	now     time.Time
	closing bool
	refuses error
	shuts   bool // it begins to shut down when it refuses
	asked   []spool.Submission
	runs    []*run.Run
	parts   []feature.Part // of the runs
}

func (h *host) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *host) After(time.Duration) <-chan time.Time { return h.rings }

func (h *host) Admits(context.Context) error { return nil }

func (h *host) ShuttingDown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closing
}

func (h *host) Permits(context.Context, string) error { return nil }

func (h *host) Check(context.Context, spool.Submission) error { return nil }

func (h *host) Submit(ctx context.Context, sub spool.Submission) (record api.Record, joined bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.refuses; err != nil {
		if h.shuts {
			h.closing, h.refuses = true, nil
		}
		return record, false, err
	}
	r := &run.Run{}
	if r.ID, err = run.NewID(); err != nil {
		return record, false, err
	}
	part := h.scheduler.Join(ctx, r, nil)
	part.Open()
	row := store.Run{ID: r.ID, Root: r.ID, Unit: sub.Unit, State: "idle", CreatedAt: h.now, Record: []byte("{}"), Private: []byte("{}"), Input: []byte("{}"), Schedule: r.Record.Schedule.Name}
	if row.With, err = part.Prepare(ctx); err != nil {
		return record, false, err
	}
	if err := h.store.Runs.Insert(ctx, row, store.Key{}); err != nil {
		part.Close()
		return record, false, err
	}
	h.asked, h.runs, h.parts = append(h.asked, sub), append(h.runs, r), append(h.parts, part)
	return r.Record, false, nil
}

// ends has a run be over.
func (h *host) ends(n int) {
	h.with(func() {
		h.runs[n].Record.Transitions, h.runs[n].Record.Outcome = []api.Transition{{State: api.Idle}}, api.Success
		h.parts[n].Close()
	})
}

// with does something while nobody else has the host.
func (h *host) with(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

// harness is a Scheduler whose loop goes on until the test ends.
type harness struct {
	*Scheduler
	t    *testing.T
	host *host
	stop func() // ends the loop
}

func newFixture(t *testing.T) *harness {
	st, err := store.Open(filepath.Join(t.TempDir(), "aod.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &host{store: st, now: noon, rings: make(chan time.Time)}
	h.scheduler = New(h)
	s := h.scheduler
	process := feature.Process{Home: run.Home{Dir: t.TempDir()}, PayloadBytes: 1000, Store: st, Gate: h, Submissions: h, Logger: slog.New(slog.DiscardHandler)}
	if err := s.Init(process); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Run(ctx)
	}()
	stop := func() {
		cancel()
		<-over
	}
	t.Cleanup(func() {
		stop()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return &harness{s, t, h, stop}
}

func (f *harness) put(spec api.ScheduleSpec) {
	f.t.Helper()
	spec.Unit, spec.Every = "worker", "1m"
	if _, _, err := f.Put(trusted.Context(f.t), "one", spec, nil); err != nil {
		f.t.Fatal(err)
	}
}

// at has the loop look at the clock when it shows so many minutes after noon.
func (f *harness) at(minutes int) {
	f.host.with(func() { f.host.now = noon.Add(time.Duration(minutes) * time.Minute) })
	f.host.rings <- f.host.now
}

// told is the history in words, by the minutes after noon.
func (f *harness) told() string {
	page, err := f.Occurrences(trusted.Context(f.t), "one", 0, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	var words []string
	for _, o := range slices.Backward(page.Occurrences) {
		words = append(words, fmt.Sprint(o.Planned.Sub(noon).Minutes(), " ", o.Outcome, o.Reason))
	}
	return strings.Join(words, ", ")
}

func (f *harness) becomes(want string) {
	f.t.Helper()
	testkit.Eventually(f.t, want, func() bool { return f.told() == want })
}

func TestTheHostIsAskedForWhatTheScheduleSays(t *testing.T) {
	f := newFixture(t)
	f.put(api.ScheduleSpec{Input: []byte(`{"a": 1}`), Timeout: "5s", Metadata: map[string]string{"for": "ada"}})
	f.at(1)
	f.becomes("1 started")
	want := []spool.Submission{{Unit: "worker", Input: []byte(`{"a":1}`), Timeout: 5 * time.Second, Metadata: map[string]string{"for": "ada"}, Unattended: true}}
	f.stop()
	if diff := cmp.Diff(want, f.host.asked); diff != "" {
		t.Error(diff)
	}
	if of := f.host.runs[0].Record.Schedule; of.Name != "one" || !of.Planned.Equal(noon.Add(time.Minute)) {
		t.Errorf("its run is of %+v", of)
	}
}

func TestTheEndOfARunLetsTheNextOneBegin(t *testing.T) {
	f := newFixture(t)
	f.put(api.ScheduleSpec{Overlap: api.OverlapQueue})
	f.at(1)
	f.becomes("1 started")
	f.at(2)
	f.becomes("1 started, 2 waiting")
	f.host.ends(0)
	f.becomes("1 started, 2 started")
}

func TestWhatTheHostRefusesIsStoredButForItsShutdown(t *testing.T) {
	f := newFixture(t)
	f.put(api.ScheduleSpec{})
	f.host.with(func() { f.host.refuses = fault.New(fault.Busy, ": too many wait") })
	f.at(1)
	f.becomes("1 refused: too many wait")
	f.host.with(func() { f.host.shuts = true })
	f.at(2)
	testkit.Eventually(t, "it shuts down", func() bool { return f.host.ShuttingDown() })
	f.at(3)
	f.at(4) // the loop has taken what was due at 3
	f.stop()
	f.becomes("1 refused: too many wait")
	registry := prometheus.NewRegistry()
	registry.MustRegister(f.figures.occurred)
	if counted, err := registry.Gather(); err != nil || len(counted) != 1 || len(counted[0].Metric) != 1 || counted[0].Metric[0].GetCounter().GetValue() != 1 {
		t.Errorf("counted %v, %v", counted, err)
	}
}
