package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func TestAGateLetsSoManyPassInAMinuteFairlyByRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.limit(rate{requests: 60})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var mu sync.Mutex
		passed := map[string]int{}
		var all sync.WaitGroup
		for run, clients := range map[string]int{"a": 1, "b": 2, "c": 4, "d": 8, "e": 30} {
			for range clients {
				all.Go(func() {
					for {
						leave, err := g.enter(ctx, run, 0)
						if err != nil {
							return
						}
						leave(0)
						mu.Lock()
						passed[run]++
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		total := 0
		for run, n := range passed {
			total += n
			if n < 20 || n > 30 { // 126 in two minutes, a fifth each
				t.Errorf("%s passed %d times", run, n)
			}
		}
		if total < 120 || total > 127 {
			t.Errorf("%d passed in two minutes: %v", total, passed)
		}
	})
}

func TestAGateHasOnlySoManyInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.limit(rate{slots: 2})
		var mu sync.Mutex
		inside, most := 0, 0
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				leave, err := g.enter(t.Context(), fmt.Sprint(i%3), 0)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				inside--
				mu.Unlock()
				leave(0)
			})
		}
		start := time.Now()
		all.Wait()
		if took := time.Since(start); most != 2 || took != 10*time.Second || len(g.queues)+len(g.turns) != 0 {
			t.Errorf("%d inside at once, all done after %s: %+v", most, took, g)
		}
	})
}

func TestTokensThatWereNotNeededComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.limit(rate{tokens: 6000})
		start := time.Now()
		leave, err := g.enter(t.Context(), "a", 3000) // more than a burst: it goes into debt
		must(t, err)
		leave(2900)
		leave(2900) // counts once
		leave, err = g.enter(t.Context(), "a", 500)
		must(t, err)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("it waited for %s", waited)
		}
		leave(0)
		_, err = g.enter(t.Context(), "a", 600)
		must(t, err)
		if waited := time.Since(start); waited < 5*time.Second || waited > 7*time.Second {
			t.Errorf("it waited for %s", waited)
		}
	})
}

func TestAPausedGateLetsNobodyPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.pause(30 * time.Second)
		start := time.Now()
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		if _, err := g.enter(ctx, "a", 0); !errors.Is(err, why) {
			t.Error(err)
		}
		_, err := g.enter(t.Context(), "a", 0)
		must(t, err)
		if waited := time.Since(start); waited < 30*time.Second || waited > 31*time.Second {
			t.Errorf("it waited for %s", waited)
		}
	})
}

func TestEventsAreCutWhereverTheyAreSplit(t *testing.T) {
	for _, text := range []string{"a: 1\n\ndata: x\r\n\r\n\r\rdata: y\r\rz", "\n\n\n", "data: a\rdata: b\r\r\ndata: c\n\n", ""} {
		want := cut(t, strings.NewReader(text))
		if strings.Join(want, "") != text {
			t.Errorf("%q became %q", text, want)
		}
		for size := 1; size < 5; size++ {
			got := cut(t, &slow{text, size})
			if strings.Join(got, "") != text || data(got) != data(want) {
				t.Errorf("%q became %q, and in parts of %d %q", text, want, size, got)
			}
		}
	}
}

func TestOneRequestUnderAKeyGoesAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keyring
		release, err := k.hold(t.Context(), "a")
		must(t, err)
		other, err := k.hold(t.Context(), "b")
		must(t, err)
		other()
		got := make(chan struct{})
		go func() {
			again, err := k.hold(t.Context(), "a")
			if err == nil {
				close(got)
				again()
			}
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Error("two have the key")
		default:
		}
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		if _, err := k.hold(ctx, "a"); !errors.Is(err, why) {
			t.Error(err)
		}
		release()
		<-got
	})
}

// slowly takes its time for each part.
type slowly struct{ each time.Duration }

func (s slowly) Read(p []byte) (int, error) {
	time.Sleep(s.each)
	return copy(p, "x"), nil
}

func TestOnlySilenceEndsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := httpwire.WatchSilence(t.Context(), time.Minute)
		body := w.Reader(slowly{50 * time.Second}, time.Minute)
		for range 5 {
			_, err := body.Read(make([]byte, 1))
			must(t, err)
		}
		if ctx.Err() != nil {
			t.Error("it ended while there was something to read")
		}
		time.Sleep(61 * time.Second)
		if !errors.Is(context.Cause(ctx), httpwire.ErrSilent) {
			t.Error("silence doesn't end it")
		}
		w.Stop(nil)
	})
}
