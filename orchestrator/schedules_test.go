package orchestrator

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
)

// handClock shows what its test sets.
type handClock struct {
	mu    sync.Mutex
	now   time.Time
	waits []chan time.Time
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After implements Clock: whoever waits looks at the clock whenever it is set, and now and then,
// since it may have been set after they looked and before they waited.
func (c *handClock) After(time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := make(chan time.Time, 1)
	c.waits = append(c.waits, wait)
	time.AfterFunc(100*time.Millisecond, func() { wake(wait) })
	return wait
}

func wake(wait chan time.Time) {
	select {
	case wait <- time.Time{}:
	default:
	}
}

func (c *handClock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
	for _, wait := range c.waits {
		wake(wait)
	}
	c.waits = nil
}

// scheduled is a fixture whose schedules go by a clock of the test's own.
type scheduled struct {
	*fixture
	clock *handClock
}

func newScheduled(t *testing.T, change ...func(*settings)) *scheduled {
	clock := &handClock{now: noon}
	return &scheduled{newFixture(t, append(change, func(s *settings) { s.Clock = clock })...), clock}
}

// put makes the schedule "one", of a run each minute unless the specification says otherwise.
func (w *scheduled) put(spec api.ScheduleSpec) api.Schedule {
	w.t.Helper()
	if spec.Unit == "" {
		spec.Unit = "worker"
	}
	if spec.Every+spec.At+spec.Cron == "" {
		spec.Every = "1m"
	}
	made, _, err := w.schedules().Put(trusted.Context(w.t), "one", spec, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// history is that of the schedule "one", the oldest first.
func (w *scheduled) history() []api.Occurrence {
	w.t.Helper()
	page, err := w.schedules().Occurrences(trusted.Context(w.t), "one", 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(page.Occurrences)
	return page.Occurrences
}

// told is the history in words: "1 started 2 skipped", by the minutes after noon.
func (w *scheduled) told() string {
	var words []string
	for _, o := range w.history() {
		words = append(words, fmt.Sprintf("%v %s", o.Planned.Sub(noon).Minutes(), o.Outcome))
	}
	return strings.Join(words, " ")
}

func (w *scheduled) becomes(want string) {
	w.t.Helper()
	within(w.t, func() bool { return w.told() == want }, func() string { return w.told() + ", want " + want })
}

// restartAt has no server run until a time.
func (w *scheduled) restartAt(now time.Time) {
	w.t.Helper()
	w.stop()
	w.clock.set(now)
	w.start()
}

func (w *scheduled) show() api.Schedule {
	w.t.Helper()
	shown, err := w.schedules().Get(trusted.Context(w.t), "one")
	if err != nil {
		w.t.Fatal(err)
	}
	return shown
}

func (w *scheduled) state(want api.ScheduleState) {
	w.t.Helper()
	within(w.t, func() bool { return w.show().State == want }, func() string { return show(api.Record{}) + string(w.show().State) + ", want " + string(want) })
}

func (w *scheduled) nextOfWorker() *api.NextTime {
	w.t.Helper()
	info, err := w.service.Units.Show(trusted.Context(w.t), "worker")
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Status.Next
}

func TestAScheduleStartsRunsAtItsTimes(t *testing.T) {
	t.Parallel()
	w := newScheduled(t)
	made := w.put(api.ScheduleSpec{Cron: "*/5 * * * *", Timezone: "Europe/Berlin", Input: encoded(orders{Mark: "m", Until: "go"}), Metadata: map[string]string{"user_id": "ada"}})
	if made.State != api.ScheduleCreated || made.Next == nil || !made.Next.Equal(noon.Add(5*time.Minute)) {
		t.Errorf("made is %+v", made)
	}
	if next := w.nextOfWorker(); next == nil || next.Schedule != "one" || !next.At.Equal(*made.Next) {
		t.Errorf("the unit's next is %+v", next)
	}
	w.clock.set(noon.Add(5*time.Minute + 300*time.Millisecond))
	w.becomes("5 started")
	o := w.history()[0]
	if o.LateMS != 300 || o.Run == "" || o.Manual {
		t.Errorf("the occurrence is %+v", o)
	}
	w.state(api.ScheduleExecuting)
	record := w.until(o.Run, running)
	want := &api.ScheduleRef{Name: "one", Planned: noon.Add(5 * time.Minute)}
	if diff := cmp.Diff(want, record.Schedule); diff != "" || record.Metadata["user_id"] != "ada" {
		t.Errorf("the run's: %s, %v", diff, record.Metadata)
	}
	if j := w.service.jobs.get(o.Run); !j.Unattended {
		t.Error("its questions would wait for a person")
	}
	w.open("go")
	w.await(o.Run)
	w.state(api.ScheduleActive)
	w.submit(orders{})
	listed, err := w.service.Runs.List(trusted.Context(t), api.Filter{Schedule: "one"})
	if err != nil || len(listed.Runs) != 1 || listed.Runs[0].ID != o.Run {
		t.Errorf("its runs: %+v, %v", listed.Runs, err)
	}
	if shown := w.show(); shown.Fired != 1 || shown.Last.Run != o.Run || shown.Problem != "" {
		t.Errorf("it is %+v", shown)
	}
}

// The clock is moved around 50 occurrences: none comes twice, and the missed ones are dealt with by policy.
func TestAClockThatIsMovedDoublesNothing(t *testing.T) {
	for policy, madeUp := range map[api.MissedPolicy]int{api.MissedLast: 2, api.MissedSkip: 0, api.MissedAll: 3 + 6} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newScheduled(t)
			w.put(api.ScheduleSpec{Every: "1h", Missed: policy, Grace: "6h"})
			next := noon
			steps := func(n int) {
				for range n {
					next = next.Add(time.Hour)
					w.clock.set(next)
					w.calm()
				}
			}
			steps(20)
			for back := time.Duration(0); back <= 2*time.Hour; back += 30 * time.Minute { // it is set back, and goes on
				w.clock.set(next.Add(back - 2*time.Hour))
				w.calm()
			}
			steps(10)
			for _, jump := range []time.Duration{3 * time.Hour, 40 * 24 * time.Hour} {
				next = next.Add(jump)
				w.clock.set(next.Add(2 * time.Minute))
				w.calm()
				steps(10)
			}
			planned := map[time.Time]bool{}
			listed, err := w.service.Runs.List(trusted.Context(t), api.Filter{Schedule: "one", Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range listed.Runs {
				record, err := w.service.Runs.Get(trusted.Context(t), run.ID)
				if err != nil || planned[record.Schedule.Planned] {
					t.Errorf("%v came twice, or %v", record.Schedule, err)
				}
				planned[record.Schedule.Planned] = true
			}
			if len(planned) != 50+madeUp {
				t.Errorf("%d came, want 50 and %d", len(planned), madeUp)
			}
			if shown := w.show(); shown.Fired != 50+3+40*24 {
				t.Errorf("it has had %d", shown.Fired)
			}
		})
	}
}

// calm returns when everything that is due has had its run.
func (w *scheduled) calm() {
	w.t.Helper()
	within(w.t, func() bool {
		shown := w.show()
		if shown.Next != nil && !shown.Next.After(w.clock.Now()) || shown.State == api.ScheduleExecuting {
			return false // of a run that has ended the schedule hears last
		}
		waiting, err := w.service.store.Occurrences.Waiting(trusted.Context(w.t), 0)
		return err == nil && len(waiting) == 0 && w.service.jobs.count() == 0
	}, w.told)
}

func TestWhatWasMissedWhileNoServerRan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		missed api.MissedPolicy
		grace  string
		away   time.Duration
		want   string
	}{
		{api.MissedLast, "", 3*time.Minute + 5*time.Second, "1 missed 2 missed 3 started"},
		{api.MissedSkip, "", 3*time.Minute + 5*time.Second, "1 missed 2 missed 3 started"}, // the last one isn't late
		{api.MissedAll, "", 3*time.Minute + 5*time.Second, "1 started 2 started 3 started"},
		{api.MissedAll, "90s", 3*time.Minute + 5*time.Second, "1 missed 2 started 3 started"},
	} {
		t.Run(string(c.missed)+c.grace, func(t *testing.T) {
			t.Parallel()
			w := newScheduled(t)
			w.put(api.ScheduleSpec{Missed: c.missed, Grace: c.grace})
			w.restartAt(noon.Add(c.away))
			w.becomes(c.want)
		})
	}
	for _, c := range []struct {
		missed api.MissedPolicy
		late   time.Duration
		want   string
	}{
		{api.MissedLast, 30 * time.Minute, "60 started"},
		{api.MissedLast, 61 * time.Minute, "60 missed"},
		{api.MissedSkip, 30 * time.Minute, "60 missed"},
		{api.MissedSkip, 30 * time.Second, "60 started"},
		{api.MissedAll, 61 * time.Minute, "60 missed"},
	} {
		t.Run(fmt.Sprint("one ", c.missed, c.late), func(t *testing.T) {
			t.Parallel()
			w := newScheduled(t)
			w.put(api.ScheduleSpec{At: "2026-05-04T13:00", Missed: c.missed})
			w.restartAt(noon.Add(time.Hour + c.late))
			w.becomes(c.want)
			w.state(api.ScheduleEnded)
		})
	}
}

func TestRunsThatOverlap(t *testing.T) {
	for overlap, want := range map[api.OverlapPolicy]string{
		api.OverlapSkip:   "1 started 2 skipped 3 skipped 4 started",
		api.OverlapQueue:  "1 started 2 started 3 skipped 4 started",
		api.OverlapCancel: "1 started 2 started 3 started 4 started",
		api.OverlapAllow:  "1 started 2 started 3 started 4 started",
	} {
		t.Run(string(overlap), func(t *testing.T) {
			t.Parallel()
			w := newScheduled(t)
			w.put(api.ScheduleSpec{Overlap: overlap, Input: encoded(orders{Mark: "m", Until: "go"})})
			for n := 1; n <= 3; n++ {
				w.clock.set(noon.Add(time.Duration(n) * time.Minute))
				within(t, func() bool { return len(w.history()) == n }, w.told)
				if n == 1 {
					w.until(w.history()[0].Run, running)
				}
				if overlap == api.OverlapCancel { // the one before it ends, and then it begins
					within(t, func() bool { return w.history()[n-1].Outcome == api.OccurrenceStarted }, w.told)
				}
			}
			first := w.history()[0].Run
			w.open("go")
			cancelled := w.await(first).Outcome == api.WasCancelled
			if cancelled != (overlap == api.OverlapCancel) {
				t.Errorf("the first one was cancelled: %v", cancelled)
			}
			w.calm()
			w.clock.set(noon.Add(4 * time.Minute))
			w.becomes(want)
		})
	}
}

// What waits is stored: the next process begins it when the run before it has ended.
func TestAnOccurrenceWaitsOverARestart(t *testing.T) {
	t.Parallel()
	w := newScheduled(t)
	w.put(api.ScheduleSpec{Overlap: api.OverlapQueue, Input: encoded(orders{Mark: "m", Until: "go"})})
	w.clock.set(noon.Add(time.Minute))
	w.becomes("1 started")
	w.until(w.history()[0].Run, running)
	w.clock.set(noon.Add(2 * time.Minute))
	w.becomes("1 started 2 waiting")
	w.restartAt(noon.Add(2*time.Minute + time.Second))
	w.becomes("1 started 2 waiting")
	w.state(api.ScheduleExecuting)
	w.open("go")
	w.becomes("1 started 2 started")
}

func TestAnOccurrenceIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	w := newScheduled(t)
	w.put(api.ScheduleSpec{Input: encoded(orders{Mark: "m"})})
	if _, err := w.service.Units.Disable(trusted.Context(t), "worker"); err != nil {
		t.Fatal(err)
	}
	if problem := w.show().Problem; !strings.Contains(problem, "switched off") {
		t.Errorf("its problem is %q", problem)
	}
	w.clock.set(noon.Add(time.Minute))
	w.becomes("1 refused")
	if _, err := w.service.Units.Enable(trusted.Context(t), "worker"); err != nil {
		t.Fatal(err)
	}
	w.clock.set(noon.Add(2 * time.Minute))
	w.becomes("1 refused 2 started")
	w.calm()
	schema := filepath.Join(w.opts.Sources[0], "worker", "schema.json")
	write(t, schema, `{"input": {"type": "object", "properties": {"mark": {"type": "int"}}, "additionalProperties": false}, "output": {"type": "object"}}`)
	within(t, func() bool {
		u, err := w.service.Units.Get(trusted.Context(t), "worker")
		return err == nil && u.Version != w.version(0)
	}, func() string { return "the unit stays as it is" })
	w.clock.set(noon.Add(3 * time.Minute))
	w.becomes("1 refused 2 started 3 refused")
	if err := os.RemoveAll(filepath.Join(w.opts.Sources[0], "worker")); err != nil {
		t.Fatal(err)
	}
	within(t, func() bool { return w.show().Problem != "" }, func() string { return "it has no problem" })
	w.clock.set(noon.Add(4 * time.Minute))
	w.becomes("1 refused 2 started 3 refused 4 refused")
	var reasons []string
	for _, o := range w.history() {
		reasons = append(reasons, o.Reason)
	}
	for i, want := range map[int]string{0: "switched off", 2: "breaks the contract", 3: "no unit"} {
		if !strings.Contains(reasons[i], want) {
			t.Errorf("reason %d is %q, want %q", i, reasons[i], want)
		}
	}
}

// version is that of the unit of a run in the history, by its place among those that started.
func (w *scheduled) version(n int) string {
	for _, o := range w.history() {
		if o.Run == "" {
			continue
		}
		if n--; n < 0 {
			record, _ := w.service.Runs.Get(trusted.Context(w.t), o.Run)
			return record.Version
		}
	}
	return ""
}

func TestASchedulesFilesAreGivenToEachRun(t *testing.T) {
	t.Parallel()
	w := newScheduled(t)
	put := func(content string) api.Schedule {
		spool, err := w.service.NewSpool()
		if err != nil {
			t.Fatal(err)
		}
		if err := spool.Add("doc", "doc.txt", bytes.NewBufferString(content), 1000); err != nil {
			t.Fatal(err)
		}
		made, _, err := w.schedules().Put(trusted.Context(t), "one", api.ScheduleSpec{Unit: "worker", Every: "1m", Input: encoded(orders{Mark: "m", File: "out"})}, spool)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	made := put("first")
	again := put("first")
	if len(made.Files) != 1 || *made.Files[0].Pointer != "/doc" || !again.ChangedAt.Equal(made.ChangedAt) {
		t.Errorf("made: %+v, again: %+v", made.Files, again)
	}
	gives := func(n int, want string) {
		t.Helper()
		w.clock.set(noon.Add(time.Duration(n) * time.Minute))
		within(t, func() bool { return len(w.history()) == n && w.history()[n-1].Run != "" }, w.told)
		record := w.await(w.history()[n-1].Run)
		got, err := os.ReadFile(filepath.Join(w.opts.Home, "runs", record.ID, "output", "out"))
		if err != nil || string(got) != want {
			t.Errorf("it got %q, %v: %s", got, err, show(record))
		}
	}
	gives(1, "first")
	w.restartAt(noon.Add(90 * time.Second))
	gives(2, "first")
	put("second")
	gives(3, "second")
	left := func(want int) {
		t.Helper()
		if dirs, err := os.ReadDir(filepath.Join(w.opts.Home, "schedules")); err != nil || len(dirs) != want {
			t.Errorf("%v, %v", dirs, err)
		}
	}
	left(1)
	if err := w.schedules().Delete(trusted.Context(t), "one"); err != nil {
		t.Fatal(err)
	}
	left(0)
}

// A run is asked for with the token of whoever made its schedule, or started it by hand.
func TestRunsOfAScheduleHaveTheirClient(t *testing.T) {
	t.Parallel()
	w := newScheduled(t)
	spec := api.ScheduleSpec{Unit: "worker", Every: "1m", Input: encoded(orders{Mark: "m"})}
	if _, _, err := w.schedules().Put(access.WithGrant(trusted.Context(t), access.Grant{Name: "ops", Scopes: []access.Scope{access.Read, access.Run}}), "one", spec, nil); err != nil {
		t.Fatal(err)
	}
	w.restartAt(noon.Add(time.Minute))
	w.becomes("1 started")
	if record := w.await(w.history()[0].Run); record.By != "ops" {
		t.Errorf("it is of %q", record.By)
	}
	w.clock.set(noon.Add(time.Minute + time.Second))
	byHand, err := w.schedules().Begin(access.WithGrant(trusted.Context(t), access.Grant{Name: "ada", Scopes: []access.Scope{access.Read, access.Run}}), "one")
	if err != nil || byHand.By != "ada" {
		t.Errorf("by hand it is of %q, %v", byHand.By, err)
	}
	w.await(byHand.ID)
}

func TestPauseCountAndByHand(t *testing.T) {
	t.Parallel()
	w := newScheduled(t)
	w.put(api.ScheduleSpec{Count: 3, Input: encoded(orders{Mark: "m"})})
	pause := func(paused bool, want api.ScheduleState) {
		t.Helper()
		if got, err := w.schedules().Pause(trusted.Context(t), "one", paused); err != nil || got.State != want {
			t.Errorf("it is %s, %v, want %s", got.State, err, want)
		}
	}
	w.clock.set(noon.Add(time.Minute))
	w.becomes("1 started")
	w.calm()
	pause(true, api.SchedulePaused)
	if next := w.nextOfWorker(); next != nil {
		t.Errorf("the unit's next is %+v", next)
	}
	w.clock.set(noon.Add(10 * time.Minute))
	by, err := w.schedules().Begin(trusted.Context(t), "one")
	if err != nil || by.Schedule == nil {
		t.Fatalf("by hand: %+v, %v", by.Schedule, err)
	}
	w.await(by.ID)
	w.calm()
	pause(false, api.ScheduleActive)
	times, err := w.schedules().Next(trusted.Context(t), "one", 0)
	if err != nil || len(times.Times) != 2 || !times.Times[0].Equal(noon.Add(11*time.Minute)) {
		t.Errorf("the next times are %v, %v", times, err)
	}
	for n := 11; n <= 13; n++ {
		w.clock.set(noon.Add(time.Duration(n) * time.Minute))
		w.calm()
	}
	w.becomes("1 started 10 started 11 started 12 started")
	w.state(api.ScheduleEnded)
	if page, err := w.schedules().List(trusted.Context(t), 0, 1); err != nil || len(page.Schedules) != 1 || page.Next == nil || page.Schedules[0].Input != nil {
		t.Errorf("the list: %+v, %v", page, err)
	}
}

func TestWhatIsNoSchedule(t *testing.T) {
	t.Parallel()
	w := newScheduled(t)
	good := api.ScheduleSpec{Unit: "worker", Every: "1m"}
	past := noon.Add(-time.Hour)
	for _, c := range []struct {
		name   string
		change func(*api.ScheduleSpec)
		kind   fault.Kind
	}{
		{"../one", func(*api.ScheduleSpec) {}, fault.Input},
		{"one", func(s *api.ScheduleSpec) { s.Unit = "nobody" }, fault.NotFound},
		{"one", func(s *api.ScheduleSpec) { s.Every = "9s" }, fault.Input},
		{"one", func(s *api.ScheduleSpec) { s.Input = encoded(map[string]int{"mark": 3}) }, fault.Input},
		{"one", func(s *api.ScheduleSpec) { s.Input = []byte("{") }, fault.Input},
		{"one", func(s *api.ScheduleSpec) { s.Until = &past }, fault.Input},
		{"one", func(s *api.ScheduleSpec) { s.Every, s.At = "", "2020-01-01T00:00" }, fault.Input},
		{"one", func(s *api.ScheduleSpec) { s.Timeout = "100h" }, fault.Input},
		{"one", func(s *api.ScheduleSpec) { s.Metadata = map[string]string{"A": ""} }, fault.Input},
	} {
		spec := good
		c.change(&spec)
		if _, _, err := w.schedules().Put(trusted.Context(t), c.name, spec, nil); !fault.Is(err, c.kind) {
			t.Errorf("%s %+v: %v", c.name, spec, err)
		}
	}
	if _, err := w.schedules().Get(trusted.Context(t), "one"); !fault.Is(err, fault.NotFound) {
		t.Errorf("there is one: %v", err)
	}
	if _, err := w.service.Units.Disable(trusted.Context(t), "worker"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.schedules().Put(trusted.Context(t), "one", good, nil); !fault.Is(err, fault.Disabled) {
		t.Errorf("of a disabled unit: %v", err)
	}
}
