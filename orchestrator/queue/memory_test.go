package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// take brings in a run that may take so much memory.
func (q *trial) take(name string, bytes int64) {
	q.t.Helper()
	permit, err := q.queue.Enter(Run{Unit: name[:1], Bytes: bytes}, 1000)
	if err != nil {
		q.t.Fatal(err)
	}
	q.follow(name, permit)
}

func (q *trial) wants(order string) {
	q.t.Helper()
	if got := strings.Join(q.order, " "); got != order {
		q.t.Errorf("begun %q, want %q", got, order)
	}
}

func (q *trial) uses(bytes int64) {
	q.t.Helper()
	if _, used := q.queue.Memory(); used != bytes {
		q.t.Errorf("%d bytes are counted, want %d", used, bytes)
	}
}

func memoryTrial(t *testing.T, slots int, bytes int64, do func(q *trial)) {
	synctest.Test(t, func(t *testing.T) {
		q := newTrial(t, slots)
		q.queue.SetMemory(bytes)
		do(q)
	})
}

func TestRunsWaitForMemory(t *testing.T) {
	memoryTrial(t, 10, 100, func(q *trial) {
		q.take("a1", 60)
		q.take("a2", 40)
		q.take("a3", 30)
		q.take("b1", 0) // of a kind that takes none
		q.wants("a1 a2 b1")
		q.uses(100)
		q.leave("a2")
		q.wants("a1 a2 b1 a3")
		q.uses(90)
		q.take("c1", 50)
		q.queue.SetMemory(150) // as the engine tells, late
		synctest.Wait()
		q.wants("a1 a2 b1 a3 c1")
		q.leave("a1", "a3", "b1", "c1", "a1")
		q.uses(0)
	})
}

func TestManySmallRunsDontStarveALargeOne(t *testing.T) {
	memoryTrial(t, 10, 100, func(q *trial) {
		q.take("s0", 50)
		q.take("l1", 80)
		last := 0
		for n := 1; n < 100 && !slices.Contains(q.order, "l1"); n++ { // there is always another one that would fit
			q.take(fmt.Sprintf("s%d", n), 50)
			q.leave(fmt.Sprintf("s%d", n-1))
			last = n
		}
		if !slices.Contains(q.order, "l1") || last > inARow+3 {
			t.Errorf("%d small ones have passed: %v", last, q.order)
		}
		q.leave("l1", fmt.Sprintf("s%d", last))
		q.uses(0)
		q.take("t0", 60)
		for n := 1; n < 3*inARow; n++ { // it isn't remembered any more
			q.take(fmt.Sprintf("t%d", n), 40)
			q.leave(fmt.Sprintf("t%d", n))
		}
		if name := q.order[len(q.order)-1]; name != fmt.Sprintf("t%d", 3*inARow-1) {
			t.Errorf("the last that began is %s", name)
		}
	})
}

func TestALargeRunThatGoesAwayHoldsNobodyUp(t *testing.T) {
	memoryTrial(t, 10, 100, func(q *trial) {
		q.take("s0", 50)
		q.take("l1", 80)
		for n := 1; n <= inARow; n++ {
			q.take(fmt.Sprintf("s%d", n), 50)
			q.leave(fmt.Sprintf("s%d", n))
		}
		q.take("t1", 50)
		before := len(q.order)
		q.leave("l1")
		if len(q.order) != before+1 || q.order[before] != "t1" {
			t.Errorf("%v", q.order)
		}
	})
}

// All that has begun waits for its calls: without another rule they would wait for ever.
func TestAChainOfCallsNeverWaitsForItsOwnMemory(t *testing.T) {
	memoryTrial(t, 2, 100, func(q *trial) {
		q.take("a1", 60)
		q.take("b1", 60) // it has a slot, and no memory
		q.wants("a1")
		yield := NewYield(q.permits["a1"])
		called := make(chan struct{})
		done := make(chan bool)
		go func() {
			yield.Await(context.Background(), func() { <-called })
			done <- yield.Regain(context.Background())
		}()
		synctest.Wait()
		q.wants("a1 b1")
		q.uses(120) // the sandbox of the caller is there
		q.take("c1", 10)
		q.wants("a1 b1")
		close(called)
		if !<-done {
			t.Error("it didn't regain its slot")
		}
		q.uses(120)
		q.leave("b1")
		q.wants("a1 b1 c1")
		q.leave("a1", "c1")
		q.uses(0)
	})
}

func TestWhatRunsAlreadyCounts(t *testing.T) {
	memoryTrial(t, 10, 100, func(q *trial) {
		q.follow("a1", q.queue.Occupy(Run{Unit: "a", Bytes: 150}))
		q.follow("b1", q.queue.Reenter(Run{Unit: "b", Bytes: 10}))
		q.wants("a1")
		q.leave("a1")
		q.wants("a1 b1")
	})
}
