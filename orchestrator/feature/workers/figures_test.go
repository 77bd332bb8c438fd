package workers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
)

// busy is a queue whose machines have a run for each letter of their names.
type busy struct{ feature.Machines }

func (busy) Running(name string) int { return len(name) }

// gathered are the metrics of a feature, each as "name label value".
func gathered(t *testing.T, f *Feature) (all []string) {
	t.Helper()
	own := prometheus.NewPedanticRegistry()
	own.MustRegister(f.Collectors()...)
	families, err := own.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.Metric {
			words := []string{family.GetName()}
			for _, label := range m.Label {
				words = append(words, label.GetName()+"="+label.GetValue())
			}
			all = append(all, strings.Join(append(words, fmt.Sprint(m.GetGauge().GetValue()+m.GetCounter().GetValue())), " "))
		}
	}
	return all
}

func TestFiguresOfWorkers(t *testing.T) {
	t.Parallel()
	f := New(Options{Grace: time.Minute})
	f.process.Machines = busy{}
	f.registry = newRegistry(f, nil)
	f.registry.begun = time.Now().Add(-time.Hour)
	want := []string{
		"aod_worker_leases_lost_total 2", "aod_workers state=away 0", "aod_workers state=connected 0", "aod_workers state=drained 0", "aod_workers state=lost 0",
	}
	f.lostAttempts.Store(2)
	if got := gathered(t, f); !slices.Equal(got, want) {
		t.Errorf("without workers: %q", got)
	}
	for _, w := range []struct {
		name    string
		drained bool
		silent  time.Duration
		here    bool
	}{
		{"a", false, 0, true},
		{"bb", false, wire.Lease + time.Second, true},
		{"ccc", true, 0, true},
		{"dddd", true, time.Second, false},
		{"eeeee", false, time.Hour, false},
		{"ffffff", true, time.Hour, false},
	} {
		one := newWorker(w.name)
		one.drained, one.seen, one.about.Slots = w.drained, time.Now().Add(-w.silent), 10*len(w.name)
		if w.here {
			one.stream = &stream{}
		}
		f.registry.all[w.name] = one
	}
	f.registry.all["invited"] = newWorker("invited")
	want = []string{
		"aod_worker_leases_lost_total 2",
		"aod_worker_running worker=a 1", "aod_worker_running worker=bb 2", "aod_worker_running worker=ccc 3", "aod_worker_running worker=dddd 4",
		"aod_worker_slots worker=a 10", "aod_worker_slots worker=bb 20", "aod_worker_slots worker=ccc 30", "aod_worker_slots worker=dddd 40",
		"aod_workers state=away 2", "aod_workers state=connected 1", "aod_workers state=drained 1", "aod_workers state=lost 2",
	}
	if got := gathered(t, f); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
