package bytegate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

const mib = 1 << 20

// fill takes what a holder can have, in steps, and returns how much that is.
func fill(g *Gate, holder string) (took int64) {
	for g.Acquire(holder, 64<<10) == nil {
		took += 64 << 10
	}
	return took
}

func TestAHolderHasAtMostWhatItLeavesFree(t *testing.T) {
	g := New(120 * mib)
	for n, want := range []int64{60, 30, 15} { // of what is free each time
		if took := fill(g, fmt.Sprint("run ", n)); took != want*mib {
			t.Errorf("the holder %d took %d bytes", n, took)
		}
	}
	if took := fill(g, "run 0"); took != 0 {
		t.Errorf("a holder over its share took %d bytes more", took)
	}
}

func TestHoldersThatFillAGateTogetherHaveTheSame(t *testing.T) {
	g := New(120 * mib)
	took := map[string]int64{}
	for refused := 0; refused < 5; {
		refused = 0
		for _, holder := range []string{"a", "b", "c", "d", "e"} {
			if g.Acquire(holder, mib) != nil {
				refused++
				continue
			}
			took[holder] += mib
		}
	}
	for holder, n := range took {
		if n < 19*mib || n > 20*mib {
			t.Errorf("%s has %d bytes", holder, n)
		}
	}
	if _, err := g.Take("newcomer", 10*mib); err != nil {
		t.Errorf("a newcomer finds no room: %v", err)
	}
}

func TestAGateRefusesWithWhatToDo(t *testing.T) {
	g := New(10)
	release, err := g.Take("run", 5)
	must(t, err)
	_, err = g.Take("run", 1)
	if !fault.Is(err, fault.Unavailable) || fault.Public(err).Hint == "" {
		t.Error(err)
	}
	release()
	release()
	if g.Held() != 0 || len(g.by) != 0 {
		t.Errorf("%d bytes are held, by %v", g.Held(), g.by)
	}
}

func TestWhoWaitsAtAGateGetsWhatIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(10)
		release, err := g.Take("run", 5)
		must(t, err)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				must(t, g.Wait(t.Context(), "run", 4))
				time.Sleep(time.Second)
				g.Release("run", 4)
			})
		}
		synctest.Wait()
		if g.Held() != 5 {
			t.Errorf("%d bytes are held while all wait", g.Held())
		}
		release()
		all.Wait()
		if g.Held() != 0 {
			t.Errorf("%d bytes are held in the end", g.Held())
		}
	})
}

func TestAWaitAtAGateEnds(t *testing.T) {
	g := New(10)
	must(t, g.Acquire("run", 5))
	cause := errors.New("the run is over")
	ctx, end := context.WithCancelCause(t.Context())
	end(cause)
	if err := g.Wait(ctx, "run", 1); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	if err := g.Wait(t.Context(), "other", 6); !fault.Is(err, fault.Unavailable) {
		t.Errorf("it waits for what never comes: %v", err)
	}
}

func TestAGateIsSafeForConcurrentUse(t *testing.T) {
	g := New(1000)
	var all sync.WaitGroup
	for holder := range 8 {
		all.Go(func() {
			for range 500 {
				if release, err := g.Take(fmt.Sprint(holder), 60); err == nil {
					release()
				}
				if g.Wait(t.Context(), fmt.Sprint(holder), 60) == nil {
					g.Release(fmt.Sprint(holder), 60)
				}
			}
		})
	}
	all.Wait()
	if g.Held() != 0 || len(g.by) != 0 {
		t.Errorf("%d bytes are held, by %v", g.Held(), g.by)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
