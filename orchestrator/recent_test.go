package orchestrator

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
)

func TestARunIsToldOfAQueueThatIsTooLong(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(o *settings) { o.Concurrency, o.QueueWait = 1, time.Minute })
	hold := w.submit(orders{Until: "end"})
	w.until(hold, running)
	w.service.recent.Ended(api.Record{Unit: "worker", Outcome: api.Success}, time.Now())
	w.service.recent.Since = time.Now().Add(-10 * time.Minute) // one run in ten minutes
	first, second := w.submit(orders{}), w.submit(orders{})
	warnings := func(id string) string {
		record, err := w.service.Runs.Get(trusted.Context(t), id)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(record.Warnings, "\n")
	}
	if got := warnings(first); !strings.Contains(got, "in about 10m0s") {
		t.Errorf("warnings of the run that is next: %q", got)
	}
	if got := warnings(second); !strings.Contains(got, "2 runs of this unit wait for their turn") || !strings.Contains(got, "queue_wait") {
		t.Errorf("warnings of a run behind another: %q", got)
	}
	defer w.open("end")
	stats, err := w.service.Figures.Stats(trusted.Context(t))
	if err != nil || stats.Busy != 1 || stats.Queued != 2 || len(stats.Units) != 1 || stats.Units[0].Live[api.Queued] != 2 || stats.Units[0].Live["running"] != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
}
