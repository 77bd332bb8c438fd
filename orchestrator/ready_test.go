package orchestrator

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

var errGone = errors.New("gone")

// prober answers probes after a while.
type prober struct {
	asked  atomic.Int32
	takes  time.Duration
	answer error
}

func (p *prober) probe(answered func(error)) bool {
	p.asked.Add(1)
	takes, answer := p.takes, p.answer
	go func() {
		time.Sleep(takes) // of the bubble's clock
		answered(answer)
	}()
	return true
}

func TestManyWhoAskCauseOneProbeASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, r := &prober{takes: 10 * time.Millisecond}, &readiness{}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				for range 20 {
					if err := r.get(t.Context(), p.probe); err != nil {
						t.Error(err)
					}
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		all.Wait()
		if n := p.asked.Load(); n < 2 || n > 3 {
			t.Errorf("%d probes in two seconds", n)
		}
	})
}

func TestASlowEngineStaysReadyForFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, r := &prober{}, &readiness{}
		if err := r.get(t.Context(), p.probe); err != nil {
			t.Fatal(err)
		}
		p.takes = 4 * time.Second
		for range 4 {
			time.Sleep(time.Second)
			began := time.Now()
			if err := r.get(t.Context(), p.probe); err != nil || time.Since(began) > probePatience {
				t.Errorf("%v after %s", err, time.Since(began))
			}
		}
		time.Sleep(10 * time.Second)
		p.takes = time.Hour
		if err := r.get(t.Context(), p.probe); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a silent engine: %v", err)
		}
		time.Sleep(time.Hour)
	})
}

func TestARefusalCountsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, r := &prober{}, &readiness{}
		if err := r.get(t.Context(), p.probe); err != nil {
			t.Fatal(err)
		}
		p.answer = errGone
		time.Sleep(probeEvery)
		if err := r.get(t.Context(), p.probe); !errors.Is(err, errGone) {
			t.Errorf("an engine that is gone: %v", err)
		}
		p.answer = nil
		time.Sleep(probeEvery)
		if err := r.get(t.Context(), p.probe); err != nil {
			t.Errorf("it is back: %v", err)
		}
	})
}

func TestAnEngineThatHangsIsToldAsOneThatIsSilent(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	hung := make(chan struct{})
	w.hang("Probe", hung)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, runtime.Silent(probeTime))
	defer cancel()
	err := w.service.askKinds(ctx) // the probe's time is over
	close(hung)
	if said := fault.Public(err); said.Kind != fault.Unavailable || !strings.Contains(said.Msg, "has not answered") || !strings.Contains(said.Hint, "restart") {
		t.Errorf("%+v", said)
	}
}
