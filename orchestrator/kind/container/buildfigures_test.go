package container

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// counted returns the builds by how they ended, without those of which there was none, and how many had a turn.
func (f *buildFigures) counted(t *testing.T) (ends map[string]float64, turns uint64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(f.collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ends = map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			turns += m.GetHistogram().GetSampleCount()
			if n := m.GetCounter().GetValue(); n > 0 {
				ends[m.GetLabel()[0].GetValue()] = n
			}
		}
	}
	return ends, turns
}

func TestBuildsAreCountedByHowTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYardOf(BuildOptions{AtOnce: 1, Timeout: time.Minute, Wait: time.Second})
		long, leave := context.WithCancel(t.Context())
		gone := y.join(long, "abandoned") // it has the only turn
		if err := <-y.join(t.Context(), "late"); !fault.Is(err, fault.Busy) {
			t.Errorf("late: %v", err)
		}
		leave()
		<-gone
		synctest.Wait()
		if err := <-y.join(t.Context(), "slow"); !fault.Is(err, fault.BuildTimeout) {
			t.Errorf("slow: %v", err)
		}
		close(y.finish)
		for range 2 {
			if err := <-y.join(t.Context(), "good"); err != nil {
				t.Error(err)
			}
		}
		for _, failure := range []error{fault.New(fault.Build, "a step failed"), fault.New(fault.Forbidden, "too large"), errors.New("the engine is gone")} {
			_, err := y.builds.join(t.Context(), fmt.Sprint(failure), quiet, func(context.Context, func(runtime.BuildEvent)) (runtime.Image, error) {
				return runtime.Image{}, failure
			})
			if !errors.Is(err, failure) {
				t.Error(err)
			}
		}
		ends, turns := y.builds.figures.counted(t)
		want := map[string]float64{"built": 2, "failed": 1, "timeout": 1, "refused": 2, "abandoned": 1, "error": 1}
		if diff := cmp.Diff(want, ends); diff != "" || turns != 7 {
			t.Errorf("%d had a turn, %s", turns, diff)
		}
	})
}
