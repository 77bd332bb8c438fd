package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/agent-on-demand/aod/fault"
)

// queueing tries a queue with named runs and writes down who got a slot, in order.
type queueing struct {
	t       *testing.T
	queue   *queue
	tickets map[string]*ticket
	order   []string
}

func newQueueing(t *testing.T, slots int) *queueing {
	return &queueing{t: t, queue: newQueue(slots), tickets: map[string]*ticket{}}
}

// enter brings in runs named UNIT and a number, such as "a1".
func (q *queueing) enter(limit int, names ...string) {
	q.t.Helper()
	for _, name := range names {
		ticket, err := q.queue.enter(name[:1], limit, 100)
		if err != nil {
			q.t.Fatal(err)
		}
		q.follow(name, ticket)
	}
}

func (q *queueing) follow(name string, ticket *ticket) {
	q.tickets[name] = ticket
	go func() {
		if ticket.wait(q.t.Context()) == nil {
			q.order = append(q.order, name) // the tests' bubble runs one goroutine at a time
		}
	}()
	synctest.Wait()
}

func (q *queueing) leave(names ...string) {
	for _, name := range names {
		q.tickets[name].leave()
		synctest.Wait()
	}
}

func (q *queueing) want(order string) {
	q.t.Helper()
	synctest.Wait()
	if got := strings.Join(q.order, " "); got != order {
		q.t.Errorf("slots were given to %q, want %q", got, order)
	}
}

func (q *queueing) wantEmpty() {
	q.t.Helper()
	if running, waiting := q.queue.counts(); running != 0 || len(waiting) != 0 || len(q.queue.lanes) != 0 || len(q.queue.turn) != 0 {
		q.t.Errorf("left in the queue: %d running, %v waiting, lanes %v, turns %d", running, waiting, q.queue.lanes, len(q.queue.turn))
	}
}

func TestQueueOrder(t *testing.T) {
	cases := map[string]func(t *testing.T){
		"one unit is served in the order of arrival": func(t *testing.T) {
			q := newQueueing(t, 1)
			q.enter(0, "a1", "a2", "a3")
			q.leave("a1", "a2", "a3")
			q.want("a1 a2 a3")
			q.wantEmpty()
		},
		"a unit with many runs doesn't starve another": func(t *testing.T) {
			q := newQueueing(t, 1)
			q.enter(0, "a1", "a2", "a3", "a4", "b1", "c1", "b2")
			q.leave("a1", "a2", "b1", "c1", "a3", "b2", "a4")
			q.want("a1 a2 b1 c1 a3 b2 a4")
			q.wantEmpty()
		},
		"a unit at its limit is passed over": func(t *testing.T) {
			q := newQueueing(t, 3)
			q.enter(1, "a1", "a2", "a3")
			q.enter(0, "b1")
			q.want("a1 b1")
			q.leave("a1", "a2", "b1", "a3")
			q.want("a1 b1 a2 a3")
			q.wantEmpty()
		},
		"who gives up its place is passed over": func(t *testing.T) {
			q := newQueueing(t, 1)
			q.enter(0, "a1", "a2", "a3", "b1")
			q.leave("a2", "a1", "a3", "a3", "b1")
			q.want("a1 a3 b1")
			q.wantEmpty()
		},
		"what runs after a restart counts, beyond the slots": func(t *testing.T) {
			q := newQueueing(t, 1)
			first, second := q.queue.occupy("a", 0), q.queue.occupy("b", 0)
			q.enter(0, "c1")
			first.leave()
			q.want("")
			second.leave()
			q.want("c1")
			q.leave("c1")
			q.wantEmpty()
		},
		"a suspended run lends its slot and comes before all others": func(t *testing.T) {
			q := newQueueing(t, 1)
			q.enter(0, "a1", "b1", "c1", "d1")
			if err := q.tickets["a1"].suspend(); err != nil {
				t.Fatal(err)
			}
			q.want("a1 b1")
			go func() {
				if q.tickets["a1"].resume(t.Context()) == nil {
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
		"a suspended run may leave": func(t *testing.T) {
			q := newQueueing(t, 1)
			q.enter(0, "a1")
			if err := q.tickets["a1"].suspend(); err != nil {
				t.Fatal(err)
			}
			q.leave("a1")
			q.wantEmpty()
			if err := q.tickets["a1"].suspend(); !errors.Is(err, errNoSlot) {
				t.Errorf("suspend without a slot: %v", err)
			}
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

func TestQueueRefusesWhatItCanNotHold(t *testing.T) {
	q := newQueue(1)
	var tickets []*ticket
	for range 4 { // one runs, three wait
		ticket, err := q.enter("a", 0, 3)
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, ticket)
	}
	if _, err := q.enter("a", 0, 3); !fault.Is(err, fault.Busy) {
		t.Errorf("the fourth that would wait: %v, want Busy", err)
	}
	if other, err := q.enter("b", 0, 3); err != nil {
		t.Errorf("another unit has a queue of its own: %v", err)
	} else {
		other.leave()
	}
	again := q.reenter("a", 0)
	tickets = append(tickets, again)
	for _, ticket := range tickets {
		ticket.leave()
	}
	if len(q.lanes) != 0 || q.free != 1 {
		t.Errorf("left: %v, %d free", q.lanes, q.free)
	}
}

func TestQueueWaitEndsWithItsContext(t *testing.T) {
	why := errors.New("no longer wanted")
	for _, slots := range []int{0, 1} { // also when there is a slot at that very moment
		for range 20 {
			q := newQueue(slots)
			ticket, err := q.enter("a", 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(why)
			if err := ticket.wait(ctx); !errors.Is(err, why) {
				t.Fatalf("wait with %d slots: %v", slots, err)
			}
			if running, waiting := q.counts(); len(waiting) != 0 || running != 0 || q.free != slots {
				t.Fatalf("of %d slots %d are free, %d run, still waiting: %v", slots, q.free, running, waiting)
			}
		}
	}
}

// Whatever comes in what order: no more runs than slots, none lost, nothing left.
func TestQueueUnderLoad(t *testing.T) {
	q := newQueue(4)
	running := make(chan struct{}, 4) // a fifth would block for ever
	done := make(chan error)
	const runs = 2000
	for n := range runs {
		go func() {
			ticket := q.reenter(fmt.Sprint("unit", n%7), n%3)
			if err := ticket.wait(t.Context()); err != nil {
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
			ticket.leave()
			done <- nil
		}()
	}
	for range runs {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if slices.Contains([]int{q.running, len(q.lanes), len(q.turn)}, 1) || q.free != 4 {
		t.Errorf("left: %d running, %v, %d free", q.running, q.lanes, q.free)
	}
}
