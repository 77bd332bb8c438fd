package queue

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestYield(t *testing.T) {
	cases := map[string]func(t *testing.T, q *trial, y *Yield){
		"the slot is another's while the run waits for a call": func(t *testing.T, q *trial, y *Yield) {
			y.Await(t.Context(), func() { q.want("a1 b1") })
			q.leave("b1")
			if !y.Regain(t.Context()) {
				t.Error("there is a free slot, and the run doesn't get it")
			}
			q.enter(0, "c1")
			q.want("a1 b1")
		},
		"a run that still waits for another call stays without a slot": func(t *testing.T, q *trial, y *Yield) {
			y.Await(t.Context(), func() {
				y.Await(t.Context(), func() {})
				if !y.Regain(t.Context()) {
					t.Error("the run has to ask again, though it waits for another call")
				}
				q.want("a1 b1")
			})
		},
		"a run that gets no slot in time has to ask again": func(t *testing.T, q *trial, y *Yield) {
			y.Await(t.Context(), func() {})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if y.Regain(ctx) {
				t.Error("the slot is another's, and the run has it too")
			}
			q.leave("b1")
			if !y.Regain(t.Context()) {
				t.Error("there is a free slot, and the run doesn't get it")
			}
		},
		"a run that got no slot in time stands in nobody's way": func(t *testing.T, q *trial, y *Yield) {
			y.Await(t.Context(), func() { q.enter(0, "c1") })
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if y.Regain(ctx) {
				t.Error("the slot is another's, and the run has it too")
			}
			q.leave("b1")
			q.want("a1 b1 c1")
			q.leave("c1")
			if !y.Regain(t.Context()) {
				t.Error("there is a free slot, and the run doesn't get it")
			}
		},
		"a run whose context has ended keeps its slot": func(t *testing.T, q *trial, y *Yield) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			y.Await(ctx, func() { t.Error("it waits") })
			q.want("a1")
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newTrial(t, 1)
				q.enter(0, "a1", "b1")
				test(t, q, NewYield(q.permits["a1"]))
				q.leave("a1", "b1")
				if p := q.permits["c1"]; p != nil {
					q.leave("c1")
				}
				q.wantEmpty()
			})
		})
	}
}
