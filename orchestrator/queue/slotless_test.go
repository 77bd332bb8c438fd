package queue

import (
	"testing"
	"testing/synctest"

	"github.com/agent-on-demand/aod/api/fault"
)

// enterSlotless brings in runs that take no slot.
func (q *trial) enterSlotless(limit int, names ...string) {
	q.t.Helper()
	for _, name := range names {
		permit, err := q.queue.Enter(Run{Unit: name[:1], Limit: limit, Slotless: true}, 100)
		if err != nil {
			q.t.Fatal(err)
		}
		q.follow(name, permit)
	}
}

func TestRunsWithoutASlot(t *testing.T) {
	cases := map[string]func(t *testing.T, q *trial){
		"begin where no slot is free": func(t *testing.T, q *trial) {
			q.enter(0, "a1")
			q.enterSlotless(0, "f1", "f2", "g1")
			q.want("a1 f1 f2 g1")
			q.leave("a1", "f1", "f2", "g1")
		},
		"take none from others": func(t *testing.T, q *trial) {
			q.enterSlotless(0, "f1", "f2")
			if running, _ := q.queue.Counts(); running != 0 {
				t.Errorf("%d slots are taken", running)
			}
			q.enter(0, "a1")
			q.want("f1 f2 a1")
			q.leave("f1", "f2")
			q.enter(0, "b1")
			q.want("f1 f2 a1")
			q.leave("a1", "b1")
		},
		"keep the limit of their unit": func(t *testing.T, q *trial) {
			q.enterSlotless(1, "f1", "f2", "g1")
			q.want("f1 g1")
			q.leave("f1")
			q.want("f1 g1 f2")
			q.leave("f2", "g1")
		},
		"pass those that wait for a slot": func(t *testing.T, q *trial) {
			q.enter(0, "a1", "a2", "b1")
			q.enterSlotless(1, "f1", "f2")
			q.want("a1 f1")
			q.leave("f1")
			q.want("a1 f1 f2")
			q.leave("f2", "a1", "a2", "b1")
		},
		"have none to give up": func(t *testing.T, q *trial) {
			q.enter(0, "a1")
			q.enterSlotless(1, "f1", "f2")
			NewYield(q.permits["f1"]).Await(t.Context(), func() { q.want("a1 f1") })
			if err := q.permits["f1"].Aside(t.Context(), func() { q.want("a1 f1") }); err != nil {
				t.Error(err)
			}
			q.leave("a1", "f1", "f2")
		},
		"occupy their lane after a restart, and no slot": func(t *testing.T, q *trial) {
			q.follow("f1", q.queue.Occupy(Run{Unit: "f", Limit: 1, Slotless: true}))
			q.enterSlotless(1, "f2")
			q.enter(0, "a1")
			q.want("f1 a1")
			q.leave("f1", "f2", "a1")
		},
		"don't begin when the queue is closed": func(t *testing.T, q *trial) {
			q.queue.Close()
			q.enterSlotless(0, "f1")
			q.want("")
			q.leave("f1")
		},
		"are refused beyond the bound of their queue": func(t *testing.T, q *trial) {
			q.enterSlotless(1, "f1", "f2")
			if _, err := q.queue.Enter(Run{Unit: "f", Limit: 1, Slotless: true}, 1); !fault.Is(err, fault.Busy) {
				t.Errorf("%v", err)
			}
			q.leave("f1", "f2")
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newTrial(t, 1)
				c(t, q)
				q.wantEmpty()
			})
		})
	}
}
