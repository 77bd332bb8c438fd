package orchestrator

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// TestACrowdOfSchedules measures, and judges nothing but what is stored. It is started by
// `make schedules`.
func TestACrowdOfSchedules(t *testing.T) {
	t.Parallel()
	if os.Getenv("AOD_CROWD") == "" {
		t.Skip("a measurement: make schedules")
	}
	const crowd, due = 10_000, 1_000
	w := newFixture(t, func(s *settings) { s.Queue = 2 * due })
	for from := range 100 { // as many writers as clients
		var all sync.WaitGroup
		for n := range crowd / 100 {
			all.Go(func() {
				spec := api.ScheduleSpec{Unit: "worker", Cron: fmt.Sprintf("%d %d * * *", n%60, from%24), Timezone: "Europe/Berlin", Jitter: "1h"}
				if _, _, err := w.schedules().Put(trusted.Context(t), fmt.Sprintf("idle-%d-%d", from, n), spec, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	began, busy := time.Now(), processor(t)
	time.Sleep(20 * time.Second)
	t.Logf("%d schedules idle: %.2f %% of a processor", crowd, 100*(processor(t)-busy).Seconds()/time.Since(began).Seconds())

	at := time.Now().Add(time.Minute).Truncate(time.Second).UTC()
	w.makeCrowd("due", due, func(int) time.Time { return at })
	if left := time.Until(at); left < 0 {
		t.Fatalf("making them took %v too long", -left)
	}
	pauseUntil(at)
	busy = processor(t)
	within(t, func() bool { return w.ofCrowd(due) >= due }, func() string { return fmt.Sprint(w.ofCrowd(due), " are stored") })
	t.Logf("%d due in one second: all stored %.1f s after it, of a processor %.1f s", due, time.Since(at).Seconds(), (processor(t) - busy).Seconds())
	var late []int64
	for n := range due {
		page, err := w.schedules().Occurrences(trusted.Context(t), fmt.Sprintf("due-%d", n), 0, 1)
		if err != nil || len(page.Occurrences) != 1 || page.Occurrences[0].Outcome != api.OccurrenceStarted {
			t.Fatalf("%+v, %v", page, err)
		}
		late = append(late, page.Occurrences[0].LateMS)
	}
	slices.Sort(late)
	t.Logf("lateness at that time: p50 %d ms, p99 %d ms", late[due/2], late[due*99/100])
	w.spread(t)
}

// makeCrowd makes schedules of one time each.
func (w *fixture) makeCrowd(name string, n int, at func(n int) time.Time) {
	w.t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			spec := api.ScheduleSpec{Unit: "worker", At: at(i).Format(time.RFC3339Nano)}
			if _, _, err := w.schedules().Put(trusted.Context(w.t), fmt.Sprintf("%s-%d", name, i), spec, nil); err != nil {
				w.t.Error(err)
			}
		})
	}
	all.Wait()
}

func pauseUntil(at time.Time) { time.Sleep(time.Until(at)) }

// spread measures the lateness of occurrences that don't come at once.
func (w *fixture) spread(t *testing.T) {
	const some = 200
	from := time.Now().Add(time.Minute).Truncate(time.Second).UTC()
	w.makeCrowd("spread", some, func(n int) time.Time { return from.Add(time.Duration(n) * 50 * time.Millisecond) })
	pauseUntil(from)
	var late []int64
	for n := range some {
		within(t, func() bool {
			page, err := w.schedules().Occurrences(trusted.Context(t), fmt.Sprintf("spread-%d", n), 0, 1)
			if err != nil || len(page.Occurrences) == 0 {
				return false
			}
			late = append(late, page.Occurrences[0].LateMS)
			return true
		}, func() string { return "not stored" })
	}
	slices.Sort(late)
	t.Logf("lateness of 20 in a second: p50 %d ms, p99 %d ms", late[some/2], late[some*99/100])
}

// ofCrowd counts the occurrences of those that are due at once, up to a number.
func (w *fixture) ofCrowd(most int) (n int) {
	filter := store.Filter{Unit: "worker", Limit: 1000}
	page, err := w.service.store.Runs.List(context.Background(), filter)
	if err != nil {
		return 0
	}
	return min(len(page.Runs), most)
}

func processor(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
