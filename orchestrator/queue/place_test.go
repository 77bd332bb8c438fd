package queue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARunThatWaitsKnowsWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slots  int
		memory int64
		before func(q *Queue) // what is there before a and b of the unit u
		want   Reason
		limit  int
	}{
		"all slots are taken":    {slots: 1, before: occupied("v"), want: ForSlot},
		"the unit's concurrency": {slots: 3, before: occupied("u"), want: ForUnit, limit: 1},
		"memory":                 {slots: 3, memory: 5, before: occupied("v"), want: ForMemory},
		"the end":                {slots: 3, before: (*Queue).Close, want: ForEnd},
		"an answer": {slots: 3, want: ForAnswer, before: func(q *Queue) {
			p := q.Occupy(Run{Unit: "u"})
			p.holdBack()
			_ = p.suspend()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := New(c.slots)
			q.SetMemory(c.memory)
			c.before(q)
			for ahead, id := range []string{"a", "b"} {
				permit := q.Reenter(Run{ID: id, Unit: "u", Limit: c.limit, Bytes: 3})
				defer permit.Leave()
				got, waits := q.PlaceOf("u", id)
				want := Place{Ahead: ahead, Reason: c.want, Slots: c.slots, Limit: c.limit}
				if diff := cmp.Diff(want, got); diff != "" || !waits {
					t.Error(diff)
				}
			}
		})
	}
}

func occupied(unit string) func(*Queue) {
	return func(q *Queue) { q.Occupy(Run{ID: "o", Unit: unit, Bytes: 3}) }
}

func TestARunThatDoesNotWaitHasNoPlace(t *testing.T) {
	t.Parallel()
	q := New(1)
	first, second := q.Reenter(Run{ID: "a", Unit: "u"}), q.Reenter(Run{ID: "b", Unit: "u"})
	defer second.Leave()
	for _, id := range []string{"a", "", "c"} {
		if got, waits := q.PlaceOf("u", id); waits {
			t.Errorf("%q: %+v", id, got)
		}
	}
	if _, waits := q.PlaceOf("v", "b"); waits {
		t.Error("b is of another unit")
	}
	first.Leave()
	if got, waits := q.PlaceOf("u", "b"); waits {
		t.Errorf("b has its slot: %+v", got)
	}
}
