package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/agent-on-demand/aod/api/fault"
)

// trial tries a queue with named runs and writes down who got a slot, in order.
type trial struct {
	t       *testing.T
	queue   *Queue
	permits map[string]*Permit
	order   []string
}

func newTrial(t *testing.T, slots int) *trial {
	return &trial{t: t, queue: New(slots), permits: map[string]*Permit{}}
}

// enter brings in runs named UNIT and a number, such as "a1".
func (q *trial) enter(limit int, names ...string) {
	q.t.Helper()
	for _, name := range names {
		permit, err := q.queue.Enter(Run{Unit: name[:1], Limit: limit}, 100)
		if err != nil {
			q.t.Fatal(err)
		}
		q.follow(name, permit)
	}
}

func (q *trial) follow(name string, permit *Permit) {
	q.permits[name] = permit
	go func() {
		if permit.Wait(q.t.Context()) == nil {
			q.order = append(q.order, name) // the tests' bubble runs one goroutine at a time
		}
	}()
	synctest.Wait()
}

func (q *trial) leave(names ...string) {
	for _, name := range names {
		q.permits[name].Leave()
		synctest.Wait()
	}
}

func (q *trial) passOn(names ...string) {
	for _, name := range names {
		q.permits[name].PassOn()
		synctest.Wait()
	}
}

func (q *trial) want(order string) {
	q.t.Helper()
	synctest.Wait()
	if got := strings.Join(q.order, " "); got != order {
		q.t.Errorf("slots were given to %q, want %q", got, order)
	}
}

func (q *trial) wantEmpty() {
	q.t.Helper()
	if running, waiting := q.queue.Counts(); running != 0 || len(waiting) != 0 || len(q.queue.units) != 0 || len(q.queue.turn) != 0 {
		q.t.Errorf("left in the queue: %d running, %v waiting, units %v, turns %d", running, waiting, q.queue.units, len(q.queue.turn))
	}
}

func TestQueueOrder(t *testing.T) {
	cases := map[string]func(t *testing.T){
		"one unit is served in the order of arrival": func(t *testing.T) {
			q := newTrial(t, 1)
			q.enter(0, "a1", "a2", "a3")
			q.leave("a1", "a2", "a3")
			q.want("a1 a2 a3")
			q.wantEmpty()
		},
		"a unit with many runs doesn't starve another": func(t *testing.T) {
			q := newTrial(t, 1)
			q.enter(0, "a1", "a2", "a3", "a4", "b1", "c1", "b2")
			q.leave("a1", "a2", "b1", "c1", "a3", "b2", "a4")
			q.want("a1 a2 b1 c1 a3 b2 a4")
			q.wantEmpty()
		},
		"a unit at its limit is passed over": func(t *testing.T) {
			q := newTrial(t, 3)
			q.enter(1, "a1", "a2", "a3")
			q.enter(0, "b1")
			q.want("a1 b1")
			q.leave("a1", "a2", "b1", "a3")
			q.want("a1 b1 a2 a3")
			q.wantEmpty()
		},
		"who gives up its place is passed over": func(t *testing.T) {
			q := newTrial(t, 1)
			q.enter(0, "a1", "a2", "a3", "b1")
			q.leave("a2", "a1", "a3", "a3", "b1")
			q.want("a1 a3 b1")
			q.wantEmpty()
		},
		"what runs after a restart counts, beyond the slots": func(t *testing.T) {
			q := newTrial(t, 1)
			first, second := q.queue.Occupy(Run{Unit: "a", Limit: 0}), q.queue.Occupy(Run{Unit: "b", Limit: 0})
			q.enter(0, "c1")
			first.Leave()
			q.want("")
			second.Leave()
			q.want("c1")
			q.leave("c1")
			q.wantEmpty()
		},
		"a slot that is passed on stays with its unit": func(t *testing.T) {
			q := newTrial(t, 1)
			q.enter(0, "a1", "b1", "a2", "c1")
			q.passOn("a1")
			q.want("a1 a2")
			q.passOn("a2", "b1", "c1")
			q.want("a1 a2 b1 c1")
			q.wantEmpty()
		},
		"a unit at its limit passes its slot on, too": func(t *testing.T) {
			q := newTrial(t, 2)
			q.enter(1, "a1", "a2")
			q.enter(0, "b1", "b2")
			q.passOn("a1")
			q.want("a1 b1 a2")
			q.leave("b1", "a2", "b2")
			q.wantEmpty()
		},
		"passing on doesn't starve the others": func(t *testing.T) {
			q := newTrial(t, 1)
			for n := range inARow + 2 {
				q.enter(0, fmt.Sprint("a", n))
			}
			q.enter(0, "b1")
			for n := range inARow + 1 {
				q.passOn(fmt.Sprint("a", n))
			}
			if got := q.order[len(q.order)-1]; got != "b1" {
				t.Errorf("after %d runs of one unit the slot went to %q", inARow+1, got)
			}
			q.leave("b1", fmt.Sprint("a", inARow+1))
			q.wantEmpty()
		},
		"a suspended run lends its slot and comes before all others": func(t *testing.T) {
			q := newTrial(t, 1)
			q.enter(0, "a1", "b1", "c1", "d1")
			if err := q.permits["a1"].suspend(); err != nil {
				t.Fatal(err)
			}
			q.want("a1 b1")
			go func() {
				if q.permits["a1"].resume(t.Context()) == nil {
					q.order = append(q.order, "a1 again")
				}
			}()
			synctest.Wait()
			q.leave("b1")
			q.want("a1 b1 a1 again")
			q.leave("a1", "c1", "d1")
			q.want("a1 b1 a1 again c1 d1")
			q.wantEmpty()
		},
		"no run begins in a closed queue, and one that lent its slot has it again": func(t *testing.T) {
			q := newTrial(t, 2)
			q.enter(0, "a1", "b1", "c1")
			if err := q.permits["a1"].suspend(); err != nil {
				t.Fatal(err)
			}
			q.enter(0, "d1")
			q.want("a1 b1 c1")
			q.queue.Close()
			q.leave("b1")
			q.want("a1 b1 c1")
			if err := q.permits["a1"].resume(t.Context()); err != nil {
				t.Error(err)
			}
			q.leave("a1", "c1")
			q.want("a1 b1 c1")
			q.leave("d1")
			q.wantEmpty()
		},
		"a suspended run may leave": func(t *testing.T) {
			q := newTrial(t, 1)
			q.enter(0, "a1")
			if err := q.permits["a1"].suspend(); err != nil {
				t.Fatal(err)
			}
			q.leave("a1")
			q.wantEmpty()
			if err := q.permits["a1"].suspend(); !errors.Is(err, errNoSlot) {
				t.Errorf("suspend without a slot: %v", err)
			}
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

func TestQueueRefusesWhatItCanNotHold(t *testing.T) {
	q := New(1)
	var permits []*Permit
	for range 4 { // one runs, three wait
		permit, err := q.Enter(Run{Unit: "a", Limit: 0}, 3)
		if err != nil {
			t.Fatal(err)
		}
		permits = append(permits, permit)
	}
	if _, err := q.Enter(Run{Unit: "a", Limit: 0}, 3); !fault.Is(err, fault.Busy) {
		t.Errorf("the fourth that would wait: %v, want Busy", err)
	}
	if other, err := q.Enter(Run{Unit: "b", Limit: 0}, 3); err != nil {
		t.Errorf("another unit has a queue of its own: %v", err)
	} else {
		other.Leave()
	}
	again := q.Reenter(Run{Unit: "a", Limit: 0})
	permits = append(permits, again)
	for _, permit := range permits {
		permit.Leave()
	}
	if len(q.units) != 0 || q.machines[0].free() != 1 {
		t.Errorf("left: %v, %d free", q.units, q.machines[0].free())
	}
}

func TestQueueWaitEndsWithItsContext(t *testing.T) {
	why := errors.New("no longer wanted")
	for _, slots := range []int{0, 1} { // also when there is a slot at that very moment
		for range 20 {
			q := New(slots)
			permit, err := q.Enter(Run{Unit: "a", Limit: 0}, 1)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(why)
			if err := permit.Wait(ctx); !errors.Is(err, why) {
				t.Fatalf("wait with %d slots: %v", slots, err)
			}
			if running, waiting := q.Counts(); len(waiting) != 0 || running != 0 || q.machines[0].free() != slots {
				t.Fatalf("of %d slots %d are free, %d run, still waiting: %v", slots, q.machines[0].free(), running, waiting)
			}
		}
	}
}

// Whatever comes in what order: no more runs than slots, none lost, nothing left.
func TestQueueUnderLoad(t *testing.T) {
	q := New(4)
	running := make(chan struct{}, 4) // a fifth would block for ever
	done := make(chan error)
	const runs = 2000
	for n := range runs {
		go func() {
			permit := q.Reenter(Run{Unit: fmt.Sprint("unit", n%7), Limit: n % 3})
			if err := permit.Wait(t.Context()); err != nil {
				done <- err
				return
			}
			select {
			case running <- struct{}{}:
			default:
				done <- errors.New("more runs than slots")
				return
			}
			<-running
			permit.Leave()
			done <- nil
		}()
	}
	for range runs {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if slices.Contains([]int{q.machines[0].running, len(q.units), len(q.turn)}, 1) || q.machines[0].free() != 4 {
		t.Errorf("left: %d running, %v, %d free", q.machines[0].running, q.units, q.machines[0].free())
	}
}
