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

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// host leads runs that do nothing until their test ends them. It is a clock, too.
type host struct {
	Host
	store *store.Store
	rings chan time.Time

	mu      sync.Mutex
	now     time.Time
	closing bool
	refuses error
	shuts   bool // it begins to shut down when it refuses
	asked   []Request
	runs    []string
	became  map[api.OccurrenceOutcome]int
	join    func(name, run string)
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

func (h *host) Check(context.Context, Request) error { return nil }

func (h *host) Start(ctx context.Context, r Request, o store.Occurrence) (api.Record, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.refuses; err != nil {
		if h.shuts {
			h.closing, h.refuses = true, nil
		}
		return api.Record{}, err
	}
	id, err := run.NewID()
	if err != nil {
		return api.Record{}, err
	}
	o.Outcome, o.Run = string(api.OccurrenceStarted), id
	row := store.Run{ID: id, Root: id, Unit: r.Unit, State: "idle", CreatedAt: h.now, Record: []byte("{}"), Private: []byte("{}"), Input: []byte("{}"), Schedule: r.Schedule, Occurrence: &o}
	if err := h.store.Insert(ctx, row, store.Key{}); err != nil {
		return api.Record{}, err
	}
	h.asked, h.runs = append(h.asked, r), append(h.runs, id)
	h.join(r.Schedule, id)
	return api.Record{ID: id}, nil
}

func (h *host) NewSpool() (*spool.Spool, error) { panic("no schedule here has files") }

// with does something while nobody else has the host.
func (h *host) with(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

// fixture is a Scheduler whose loop goes on until the test ends.
type fixture struct {
	*Scheduler
	t    *testing.T
	host *host
	stop func() // ends the loop
}

func newFixture(t *testing.T) *fixture {
	st, err := store.Open(filepath.Join(t.TempDir(), "aod.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &host{store: st, now: noon, rings: make(chan time.Time), became: map[api.OccurrenceOutcome]int{}}
	became := func(o api.OccurrenceOutcome, n int) { h.with(func() { h.became[o] += n }) }
	s := New(Options{Host: h, Store: st, PayloadBytes: 1000, Clock: h, Logger: slog.New(slog.DiscardHandler), Became: became, Late: func(time.Duration) {}})
	h.join = s.Join
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.KeepTimes(ctx)
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
	return &fixture{s, t, h, stop}
}

func (f *fixture) put(spec api.ScheduleSpec) {
	f.t.Helper()
	spec.Unit, spec.Every = "worker", "1m"
	if _, _, err := f.Put(f.t.Context(), "one", spec, nil); err != nil {
		f.t.Fatal(err)
	}
}

// at has the loop look at the clock when it shows so many minutes after noon.
func (f *fixture) at(minutes int) {
	f.host.with(func() { f.host.now = noon.Add(time.Duration(minutes) * time.Minute) })
	f.host.rings <- f.host.now
}

// told is the history in words, by the minutes after noon.
func (f *fixture) told() string {
	page, err := f.Occurrences(f.t.Context(), "one", 0, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	var words []string
	for _, o := range slices.Backward(page.Occurrences) {
		words = append(words, fmt.Sprint(o.Planned.Sub(noon).Minutes(), " ", o.Outcome, o.Reason))
	}
	return strings.Join(words, ", ")
}

func (f *fixture) becomes(want string) {
	f.t.Helper()
	testkit.Eventually(f.t, want, func() bool { return f.told() == want })
}

func TestTheHostIsAskedForWhatTheScheduleSays(t *testing.T) {
	f := newFixture(t)
	f.put(api.ScheduleSpec{Input: []byte(`{"a": 1}`), Timeout: "5s", Metadata: map[string]string{"for": "ada"}})
	f.at(1)
	f.becomes("1 started")
	want := []Request{{Schedule: "one", Unit: "worker", Input: []byte(`{"a":1}`), Timeout: 5 * time.Second, Metadata: map[string]string{"for": "ada"}, Unattended: true}}
	f.stop()
	if diff := cmp.Diff(want, f.host.asked); diff != "" {
		t.Error(diff)
	}
}

func TestTheEndOfARunLetsTheNextOneBegin(t *testing.T) {
	f := newFixture(t)
	f.put(api.ScheduleSpec{Overlap: api.OverlapQueue})
	f.at(1)
	f.becomes("1 started")
	f.at(2)
	f.becomes("1 started, 2 waiting")
	f.host.with(func() { f.Leave("one", f.host.runs[0]) })
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
	if diff := cmp.Diff(map[api.OccurrenceOutcome]int{api.OccurrenceRefused: 1}, f.host.became); diff != "" {
		t.Error(diff)
	}
}
