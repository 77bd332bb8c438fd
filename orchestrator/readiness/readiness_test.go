package readiness

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
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
		p, r := &prober{takes: 10 * time.Millisecond}, &Readiness{}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				for range 20 {
					if err := r.Get(t.Context(), p.probe); err != nil {
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
		p, r := &prober{}, &Readiness{}
		if err := r.Get(t.Context(), p.probe); err != nil {
			t.Fatal(err)
		}
		p.takes = 4 * time.Second
		for range 4 {
			time.Sleep(time.Second)
			began := time.Now()
			if err := r.Get(t.Context(), p.probe); err != nil || time.Since(began) > probePatience {
				t.Errorf("%v after %s", err, time.Since(began))
			}
		}
		time.Sleep(10 * time.Second)
		p.takes = time.Hour
		if err := r.Get(t.Context(), p.probe); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a silent engine: %v", err)
		}
		time.Sleep(time.Hour)
	})
}

func TestARefusalCountsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, r := &prober{}, &Readiness{}
		if err := r.Get(t.Context(), p.probe); err != nil {
			t.Fatal(err)
		}
		p.answer = errGone
		time.Sleep(probeEvery)
		if err := r.Get(t.Context(), p.probe); !errors.Is(err, errGone) {
			t.Errorf("an engine that is gone: %v", err)
		}
		p.answer = nil
		time.Sleep(probeEvery)
		if err := r.Get(t.Context(), p.probe); err != nil {
			t.Errorf("it is back: %v", err)
		}
	})
}
