package pool

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

func TestARunGetsTheLinesInTheirOrder(t *testing.T) {
	h, want := newHeldLog(), []string{}
	for n := range 100 {
		h.add(line(n))
		want = append(want, line(n).Text)
	}
	var got []string
	h.HandTo(func(l runtime.LogLine) { got = append(got, l.Text) })
	if !slices.Equal(got, want) {
		t.Errorf("handed over %v", got)
	}
	h.add(line(100))
	if len(got) != 101 || got[100] != "line 100" {
		t.Errorf("then %v", got[100:])
	}
}

func TestNoLineOvertakesOthersWhileTheyAreHandedOver(t *testing.T) {
	for range 50 {
		h := newHeldLog()
		var writer sync.WaitGroup
		begun := make(chan struct{})
		writer.Go(func() {
			for n := range 200 {
				if h.add(line(n)); n == 20 {
					close(begun)
				}
			}
		})
		<-begun
		var got []string // not locked: one line at a time is passed on
		h.HandTo(func(l runtime.LogLine) { got = append(got, l.Text) })
		writer.Wait()
		for n, text := range got {
			if text != line(n).Text {
				t.Fatalf("line %d is %q", n, text)
			}
		}
		if len(got) != 200 {
			t.Fatalf("%d lines came", len(got))
		}
	}
}

func TestNobodyIsCalledWhileTheStateIsLocked(t *testing.T) {
	h := newHeldLog()
	h.add(line(1))
	asked := 0
	to := func(runtime.LogLine) {
		if h.passing.TryLock() {
			h.passing.Unlock()
			t.Error("another line may overtake this one")
		}
		done := make(chan struct{})
		go func() { // whoever is called may ask, and may give the sandbox back
			defer close(done)
			_ = h.Bytes()
			h.drop()
		}()
		select {
		case <-done:
			asked++
		case <-time.After(testkit.Patience):
			t.Error("the state is locked")
		}
	}
	h.HandTo(to)
	if h.add(line(2)); asked != 2 {
		t.Errorf("it was called %d times", asked)
	}
}

func TestAProgramThatWritesTooMuchWaitsForItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, full := newHeldLog(), runtime.LogLine{Text: strings.Repeat("x", 1<<15-1)}
		for range MaxHeld >> 15 {
			h.add(full)
		}
		if h.Bytes() != MaxHeld {
			t.Fatalf("%d bytes are kept", h.Bytes())
		}
		added := false
		go func() { h.add(line(7)); added = true }()
		time.Sleep(time.Hour) // of the bubble
		if synctest.Wait(); added || h.Bytes() != MaxHeld {
			t.Fatalf("it went on: %d bytes are kept", h.Bytes())
		}
		var got []string
		h.HandTo(func(l runtime.LogLine) { got = append(got, l.Text) })
		time.Sleep(time.Second)
		if synctest.Wait(); !added || len(got) != MaxHeld>>15+1 || got[len(got)-1] != "line 7" {
			t.Errorf("%d lines came", len(got))
		}
	})
}

func TestNobodyWaitsForARunThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, full := newHeldLog(), runtime.LogLine{Text: strings.Repeat("x", MaxHeld)}
		h.add(full)
		added := make(chan struct{})
		go func() { h.add(full); close(added) }()
		synctest.Wait()
		h.drop()
		h.drop() // again does nothing
		<-added
		if h.Bytes() != MaxHeld+1 {
			t.Errorf("%d bytes are kept", h.Bytes())
		}
	})
}

func TestLinesAreHeldAgainForTheNextRun(t *testing.T) {
	h := newHeldLog()
	var first, second []string
	h.add(line(1))
	h.HandTo(func(l runtime.LogLine) { first = append(first, l.Text) })
	h.Hold()
	if h.Bytes() != 0 {
		t.Errorf("%d bytes are kept of the run before", h.Bytes())
	}
	h.add(line(2))
	if h.Bytes() != len("line 2")+1 {
		t.Errorf("%d bytes are kept", h.Bytes())
	}
	h.HandTo(func(l runtime.LogLine) { second = append(second, l.Text) })
	if !slices.Equal(first, []string{"line 1"}) || !slices.Equal(second, []string{"line 2"}) {
		t.Errorf("first %v, second %v", first, second)
	}
}

func line(n int) runtime.LogLine {
	return runtime.LogLine{Stream: "stdout", Text: fmt.Sprintf("line %d", n)}
}
