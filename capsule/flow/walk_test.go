package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// told is a unit that does what its input says: fail (a kind) until its try is more than
// until, refuse, or give `give`, and else what it was given.
func told(_ context.Context, c Call) (any, error) {
	kind, _ := c.Input["fail"].(string)
	until, bounded := c.Input["until"].(int64)
	if kind != "" && (!bounded || int64(c.Try) <= until) {
		err := failingUnit(kind)
		err.Refused = c.Input["refused"] == true
		return nil, err
	}
	if give, ok := c.Input["give"]; ok {
		return give, nil
	}
	return c.Input, nil
}

// walks are flows and what comes of them: the addresses that were kept, with the tries and the
// states; the output; the failure.
var walks = []struct {
	name, flow, output, failure string
	path                        string
	calls                       int
}{
	{
		name:   "one node after the other, over one state",
		flow:   `{start: a, nodes: {a: {run: u, with: {x: "${{ input.n }}"}, set: {y: "${{ out.x + 1 }}"}, next: b}, b: {set: {n: "${{ state.y * 10 }}"}}}, output: {n: "${{ state.n }}", was: "${{ input.n }}"}}`,
		output: `{"n":20,"was":1}`, path: "a:done b:done", calls: 1,
	},
	{
		name:   "an action chooses the edge, and a loop has visits",
		flow:   `{start: a, nodes: {a: {set: {n: "${{ state.n + visits.a }}"}, action: '${{ visits.a < 3 ? "again" : "enough" }}', next: {again: a, enough: end}}}, output: {n: "${{ state.n }}"}}`,
		output: `{"n":7}`, path: "a:done a#2:done a#3:done",
	},
	{
		name:   "an action sees what the node sets, and set sees what was there before",
		flow:   `{start: a, nodes: {a: {set: {n: "${{ state.n + 1 }}", m: "${{ state.n }}"}, action: '${{ state.n < 3 ? "again" : "enough" }}', next: {again: a, enough: end}}}, output: {n: "${{ state.n }}", m: "${{ state.m }}"}}`,
		output: `{"m":2,"n":3}`, path: "a:done a#2:done",
	},
	{
		name:   "and what a shared sub-flow of it has written",
		flow:   `{start: a, nodes: {a: {scope: shared, flow: {nodes: {i: {set: {n: 7}, action: inner}}}, set: {m: "${{ state.n }}"}, action: '${{ string(state.n) + string(state.m) }}', next: {"77": b}}, b: {}}, output: {n: "${{ state.n }}"}}`,
		output: `{"n":7}`, path: "a/i:done a:done b:done",
	},
	{
		name:   "an action that fails sets nothing",
		flow:   `{start: a, nodes: {a: {set: {n: 9, s: x}, action: "${{ state.s.t }}", next: {default: end, error: b}}, b: {}}, output: {n: "${{ state.n }}", s: "${{ state.s }}"}}`,
		output: `{"n":1,"s":null}`, path: "a:failed b:done",
	},
	{
		name:    "an action without an edge fails",
		flow:    `{start: a, nodes: {a: {action: x, next: {y: end}}}}`,
		failure: "no_route of a", path: "a:done",
	},
	{
		name:    "an edge for errors alone leaves a success without one",
		flow:    `{start: a, nodes: {a: {run: u, next: {error: end}}}}`,
		failure: "no_route of a", path: "a:done", calls: 1,
	},
	{
		name:   "every action but the reserved ones takes a plain edge",
		flow:   `{start: a, nodes: {a: {action: x, next: b}, b: {set: {n: 5}}}, output: {n: "${{ state.n }}"}}`,
		output: `{"n":5}`, path: "a:done b:done",
	},
	{
		name:    "a plain edge isn't for errors",
		flow:    `{start: a, nodes: {a: {run: u, with: {fail: broke}, next: b}, b: {}}}`,
		failure: "broke of a", path: "a:failed", calls: 1,
	},
	{
		name:   "when skips a node",
		flow:   `{start: a, nodes: {a: {when: "${{ input.n > 1 }}", run: u, set: {n: 0}, action: x, next: {x: end, default: b}}, b: {set: {m: 1}}}, output: {n: "${{ state.n }}"}}`,
		output: `{"n":1}`, path: "a:skipped b:done",
	},
	{
		name:    "max_steps bounds a scope",
		flow:    `{start: a, max_steps: 3, nodes: {a: {next: a}}}`,
		failure: "max_steps of a#4", path: "a:done a#2:done a#3:done",
	},
	{
		name:   "one visit more than it may goes on by exhausted",
		flow:   `{start: a, nodes: {a: {max_visits: 2, next: {default: a, exhausted: b}}, b: {set: {n: "${{ visits.a }}"}}}, output: {n: "${{ state.n }}"}}`,
		output: `{"n":3}`, path: "a:done a#2:done a#3:skipped b:done",
	},
	{
		name:    "or fails",
		flow:    `{start: a, nodes: {a: {max_visits: 1, next: {default: a, error: end}}}}`,
		failure: "exhausted of a#2", path: "a:done a#2:failed",
	},
	{
		name:   "an edge for errors has the error in the state",
		flow:   `{start: a, nodes: {a: {run: u, with: {fail: broke}, set: {n: 9}, next: {default: end, error: b}}, b: {set: {e: "${{ state.error.kind + state.error.node + state.error.message }}"}}}, output: {e: "${{ state.e }}", n: "${{ state.n }}"}}`,
		output: `{"e":"brokeait broke","n":1}`, path: "a:failed b:done", calls: 1,
	},
	{
		name:   "a timeout takes its own edge",
		flow:   `{start: a, nodes: {a: {run: u, with: {fail: timeout}, next: {default: end, error: end, timeout: b}}, b: {}}, output: {}}`,
		output: `{}`, path: "a:failed b:done", calls: 1,
	},
	{
		name:   "or that for errors",
		flow:   `{start: a, nodes: {a: {run: u, with: {fail: timeout}, next: {default: end, error: b}}, b: {}}, output: {}}`,
		output: `{}`, path: "a:failed b:done", calls: 1,
	},
	{
		name:   "a failed try is followed by another one",
		flow:   `{start: a, nodes: {a: {run: u, with: {fail: broke, until: 2, give: {}}, retry: 3, set: {n: "${{ run.retries }}"}}}, output: {n: "${{ state.n }}"}}`,
		output: `{"n":2}`, path: "a:failed a~2:failed a~3:done", calls: 3,
	},
	{
		name:    "tries come to an end",
		flow:    `{start: a, nodes: {a: {run: u, with: {fail: broke}, retry: 2}}}`,
		failure: "broke of a", path: "a:failed a~2:failed", calls: 2,
	},
	{
		name:    "only what retry.on has is tried again",
		flow:    `{start: a, nodes: {a: {run: u, with: {fail: broke}, retry: {tries: 3, on: [other]}}}}`,
		failure: "broke of a", path: "a:failed", calls: 1,
	},
	{
		name:    "a category is enough",
		flow:    `{start: a, nodes: {a: {run: u, with: {fail: broke}, retry: {tries: 2, on: [Transient]}}}}`,
		failure: "broke of a", path: "a:failed a~2:failed", calls: 2,
	},
	{
		name:    "a wrong input isn't tried again",
		flow:    `{start: a, nodes: {a: {run: u, with: {fail: invalid_input}, retry: 3}}}`,
		failure: "invalid_input of a", path: "a:failed", calls: 1,
	},
	{
		name:    "a refusal never is",
		flow:    `{start: a, nodes: {a: {run: u, with: {fail: broke, refused: true}, retry: {tries: 3, on: [broke]}}}}`,
		failure: "broke of a", path: "a:failed", calls: 1,
	},
	{
		name:   "a fallback takes the place of the output",
		flow:   `{start: a, nodes: {a: {run: u, with: {fail: broke}, retry: 2, fallback: {x: "${{ error.kind }}"}, set: {x: "${{ out.x }}", was: "${{ error?.kind }}"}, action: go, next: {go: b}}, b: {}}, output: {x: "${{ state.x }}", was: "${{ state.was }}"}}`,
		output: `{"was":"broke","x":"broke"}`, path: "a:failed a~2:done b:done", calls: 2,
	},
	{
		name:    "an expression that fails has the node fail",
		flow:    `{start: a, nodes: {a: {set: {x: "${{ input.n.y.z }}"}}}}`,
		failure: "expression of a", path: "a:failed",
	},
	{
		name:   "and takes its edge",
		flow:   `{start: a, nodes: {a: {run: u, set: {x: "${{ input.n.y.z }}"}, next: {default: end, error: end}}}, output: {x: "${{ state.x == nil }}"}}`,
		output: `{"x":true}`, path: "a:failed", calls: 1,
	},
	{
		name:    "a unit that isn't listed isn't called",
		flow:    `{start: a, nodes: {a: {run: "${{ 'u' + string(input.n) }}", units: [u, v]}}}`,
		failure: "expression of a", path: "a:failed",
	},
	{
		name:   "a map gives its results in order, null where one failed, and the errors",
		flow:   `{start: a, nodes: {a: {map: "${{ [1, 2, 3, 4] }}", as: x, tolerate: 50%, run: u, with: {fail: "${{ x % 2 == 0 ? 'even' : nil }}", x: "${{ x * 10 + index }}"}, collect: "${{ out.x + run.retries }}", set: {xs: "${{ out }}", es: "${{ map(errors, .node) }}"}}}, output: {xs: "${{ state.xs }}", es: "${{ state.es }}"}}`,
		output: `{"es":["a[1]","a[3]"],"xs":[10,null,32,null]}`, calls: 4,
		path: "a:done a[0]:done a[1]:failed a[2]:done a[3]:failed",
	},
	{
		name:    "one failure too many fails it",
		flow:    `{start: a, nodes: {a: {map: "${{ [1, 2, 3, 4] }}", tolerate: 1, parallel: 1, run: u, with: {fail: "${{ item % 2 == 1 ? 'odd' : nil }}"}}}}`,
		failure: "tolerance of a", path: "a:failed a[0]:failed a[1]:done a[2]:failed", calls: 3,
	},
	{
		name:    "without a tolerance it fails as its item",
		flow:    `{start: a, nodes: {a: {map: "${{ [1, 2, 3] }}", parallel: 1, run: u, with: {fail: "${{ item == 2 ? 'two' : nil }}"}}}}`,
		failure: "two of a[1]", path: "a:failed a[0]:done a[1]:failed", calls: 2,
	},
	{
		name:    "a list that is too long is refused before anything starts",
		flow:    `{start: a, nodes: {a: {map: "${{ [1, 2, 3] }}", max: 2, run: u}}}`,
		failure: "too_many_items of a", path: "a:failed",
	},
	{
		name:    "nothing is no list",
		flow:    `{start: a, nodes: {a: {map: "${{ state.none }}", run: u}}}`,
		failure: "expression of a", path: "a:failed",
	},
	{
		name:   "an empty list gives an empty one",
		flow:   `{start: a, nodes: {a: {map: "${{ [] }}", run: u, set: {xs: "${{ out }}", n: "${{ len(errors) }}"}}}, output: {xs: "${{ state.xs }}", n: "${{ state.n }}"}}`,
		output: `{"n":0,"xs":[]}`, path: "a:done",
	},
	{
		name:   "each item has its tries and its fallback",
		flow:   `{start: a, nodes: {a: {map: "${{ ['x', 'y'] }}", run: u, retry: 2, with: {fail: "${{ item }}", until: "${{ index + 1 }}", give: fine}, fallback: "${{ error.kind }}", set: {xs: "${{ out }}"}}}, output: {xs: "${{ state.xs }}"}}`,
		output: `{"xs":["fine","y"]}`, path: "a:done a[0]:failed a[0]~2:done a[1]:failed a[1]~2:done", calls: 4,
	},
	{
		name:   "what a map's items write stays inside",
		flow:   `{start: a, nodes: {a: {map: "${{ [1, 2] }}", as: x, flow: {nodes: {i: {set: {n: "${{ state.n + x + index }}"}}}}, collect: "${{ out.n }}", set: {xs: "${{ out }}"}}}, output: {n: "${{ state.n }}", xs: "${{ state.xs }}"}}`,
		output: `{"n":1,"xs":[2,4]}`, path: "a:done a[0]/i:done a[0]:done a[1]/i:done a[1]:done",
	},
	{
		name:   "branches are joined",
		flow:   `{start: a, nodes: {a: {branches: {x: {run: u, with: {give: 1}}, y: {map: "${{ [2] }}", run: u, with: {give: "${{ item }}"}}, z: {when: false, run: u}}, set: {o: "${{ out }}"}}}, output: {o: "${{ state.o }}"}}`,
		output: `{"o":{"x":1,"y":[2],"z":null}}`, path: "a:done a/x:done a/y:done a/y[0]:done a/z:skipped", calls: 2,
	},
	{
		name:    "a branch that fails has them all fail",
		flow:    `{start: a, nodes: {a: {branches: {x: {run: u, with: {fail: broke}}}}}}`,
		failure: "broke of a/x", path: "a:failed a/x:failed", calls: 1,
	},
	{
		name:   "a sub-flow sees the state around it and keeps its writes",
		flow:   `{start: a, nodes: {a: {with: {w: 1}, flow: {nodes: {i: {set: {n: "${{ state.n + state.w }}"}, action: done}}}, set: {m: "${{ out.n }}", k: "${{ keys(out) }}"}, next: {done: end}}}, output: {n: "${{ state.n }}", m: "${{ state.m }}", w: "${{ state.w }}", k: "${{ state.k }}"}}`,
		output: `{"k":["n"],"m":2,"n":1,"w":null}`, path: "a:done a/i:done",
	},
	{
		name:   "a shared one writes through",
		flow:   `{start: a, nodes: {a: {scope: shared, with: {w: 1}, flow: {nodes: {i: {set: {n: "${{ state.n + state.w }}"}}}}, set: {m: "${{ out.n }}"}}}, output: {n: "${{ state.n }}", m: "${{ state.m }}", w: "${{ state.w }}"}}`,
		output: `{"m":2,"n":2,"w":1}`, path: "a:done a/i:done",
	},
	{
		name:   "an isolated one sees what it is given alone",
		flow:   `{start: a, nodes: {a: {scope: isolated, with: {w: 1}, flow: {nodes: {i: {set: {s: "${{ state }}", i: "${{ input }}"}}}}, set: {o: "${{ out }}"}}}, output: {o: "${{ state.o }}"}}`,
		output: `{"o":{"i":{"w":1},"s":{"w":1}}}`, path: "a:done a/i:done",
	},
	{
		name:   "its failure takes the edge of its node",
		flow:   `{start: a, nodes: {a: {flow: {nodes: {i: {run: u, with: {fail: broke}}}}, next: {error: b}}, b: {}}, output: {n: "${{ state.error.node }}"}}`,
		output: `{"n":"a/i"}`, path: "a:failed a/i:failed b:done", calls: 1,
	},
	{
		name:   "data that looks like an expression stays data",
		flow:   `{start: a, nodes: {a: {run: u, with: {give: "$${{ input.n }}"}, set: {x: "${{ out }}"}, next: b}, b: {set: {x: "${{ state.x }}"}}}, output: {x: "${{ state.x }}"}}`,
		output: `{"x":"${{ input.n }}"}`, path: "a:done b:done", calls: 1,
	},
	{
		name:   "the state as a value of itself",
		flow:   `{start: a, nodes: {a: {set: {s: "${{ state }}"}, next: b}, b: {set: {s: "${{ state }}"}}}, output: {s: "${{ state.s.s.n }}"}}`,
		output: `{"s":1}`, path: "a:done b:done",
	},
}

func went(steps []Step) string {
	var out []string
	for _, s := range steps {
		at := s.Address
		if s.Try > 1 {
			at = fmt.Sprintf("%s~%d", at, s.Try)
		}
		out = append(out, at+":"+string(s.State))
	}
	return strings.Join(out, " ")
}

func TestWalks(t *testing.T) {
	for _, c := range walks {
		t.Run(c.name, func(t *testing.T) {
			h := &fakeHost{unit: told}
			ended := walked(t, c.flow, map[string]any{"n": int64(1)}, h)
			failure, output := "", ""
			if ended.Failure != nil {
				failure = ended.Failure.Kind + " of " + ended.Failure.Node
			}
			if ended.Output != nil {
				text, _ := Encode(ended.Output)
				output = string(text)
			}
			if failure != c.failure || output != c.output {
				t.Errorf("it gave %s and failed with %q (%v), want %s and %q", output, failure, ended.Failure, c.output, c.failure)
			}
			if diff := cmp.Diff(sorted(c.path), sorted(went(h.steps))); diff != "" {
				t.Errorf("the steps (-want +got):\n%s", diff)
			}
			if len(h.started) != c.calls {
				t.Errorf("it called %v", h.started)
			}
			again := walked(t, c.flow, map[string]any{"n": int64(1)}, h)
			if diff := cmp.Diff(ended, again); diff != "" {
				t.Errorf("the same over the kept steps (-first +second):\n%s", diff)
			}
		})
	}
}

func TestAMapGivesTheSameHoweverManyGoOnAtOnce(t *testing.T) {
	for _, size := range []int{0, 1, 7, 300} {
		var want Ended
		for _, parallel := range []int{1, 2, 3, 1000} {
			var now, most atomic.Int32
			h := &fakeHost{unit: func(_ context.Context, c Call) (any, error) {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				if c.Input["x"].(int64)%3 == 1 {
					return nil, failingUnit("third")
				}
				return c.Input, nil
			}}
			ended := walked(t, fmt.Sprintf(`{start: a, nodes: {a: {map: "${{ input.xs }}", parallel: %d, tolerate: 100%%, run: u, with: {x: "${{ item }}"}, collect: "${{ out.x }}", set: {xs: "${{ out }}", es: "${{ errors }}"}}}, output: {xs: "${{ state.xs }}", es: "${{ state.es }}"}}`, parallel),
				map[string]any{"xs": upTo(size)}, h)
			if int(most.Load()) > parallel || len(h.started) != size {
				t.Errorf("%d of %d items went on at once, %d began", most.Load(), size, len(h.started))
			}
			if parallel == 1 {
				want = ended
			}
			if diff := cmp.Diff(want, ended); diff != "" {
				t.Errorf("%d items, %d at once: %s", size, parallel, diff)
			}
		}
	}
}

func upTo(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

func sorted(path string) map[string]bool {
	out := map[string]bool{}
	for step := range strings.FieldsSeq(path) {
		out[step] = true
	}
	return out
}

func TestTheStateIsBounded(t *testing.T) {
	h := &fakeHost{unit: func(context.Context, Call) (any, error) { return strings.Repeat("x", MaxState/3), nil }}
	ended := walked(t, `{start: a, nodes: {a: {run: u, set: {a: "${{ out }}"}, next: b}, b: {run: u, set: {a: "${{ out }}", b: "${{ out }}"}, next: c}, c: {run: u, set: {c: "${{ out }}"}}}}`, nil, h)
	if ended.Failure == nil || ended.Failure.Kind != KindStateLimit || ended.Failure.Node != "c" {
		t.Errorf("%v", ended.Failure)
	}
	h = &fakeHost{unit: h.unit}
	ended = walked(t, `{start: a, nodes: {a: {map: "${{ [1, 2, 3, 4] }}", parallel: 1, run: u}}}`, nil, h)
	if ended.Failure == nil || ended.Failure.Kind != KindStateLimit || ended.Failure.Node != "a" {
		t.Errorf("%v", ended.Failure)
	}
}

func TestAHostThatStopsEndsTheWalk(t *testing.T) {
	stop := errors.New("stop")
	h := &fakeHost{unit: func(context.Context, Call) (any, error) { return nil, stop }}
	f := flowOf(t, `{start: a, nodes: {a: {map: "${{ [1, 2, 3] }}", tolerate: 100%, run: u, retry: 3, fallback: 1, next: {error: end, default: end}}}}`)
	ended, err := f.Walk(t.Context(), nil, nil, h)
	if !errors.Is(err, stop) || ended.Failure != nil || len(h.steps) != 0 {
		t.Errorf("%v %v %v", err, ended, h.steps)
	}
}

func TestAWalkThatIsCancelledKeepsNothingHalf(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	h := &fakeHost{unit: func(ctx context.Context, c Call) (any, error) {
		if c.Address == "b" {
			cancel(why)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return nil, nil
	}}
	f := flowOf(t, `{start: a, nodes: {a: {run: u, set: {x: 1}, next: b}, b: {run: u, retry: 3, fallback: 2, next: c}, c: {}}}`)
	ended, err := f.Walk(ctx, nil, nil, h)
	if !errors.Is(err, why) || went(h.steps) != "a:done" || ended.State["x"] != int64(1) {
		t.Errorf("%v, %s, %v", err, went(h.steps), ended.State)
	}
}

func TestNothingIsKeptAfterTheHostHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{unit: func(_ context.Context, c Call) (any, error) {
			time.Sleep(time.Duration(c.Input["x"].(int64)) * time.Second) // whatever becomes of ctx
			return nil, nil
		}}
		once := &onceFailing{fakeHost: h}
		f := flowOf(t, `{start: a, nodes: {a: {map: "${{ [1, 2, 3, 4] }}", parallel: 3, run: u, with: {x: "${{ item }}"}}}}`)
		if _, err := f.Walk(t.Context(), nil, nil, once); !errors.Is(err, errKilled) || len(h.steps) > 0 || len(h.started) != 3 {
			t.Errorf("%v, %v, %v", err, went(h.steps), h.started)
		}
	})
}

// onceFailing can't keep the first step.
type onceFailing struct {
	*fakeHost
	failed atomic.Bool
}

func (h *onceFailing) Keep(ctx context.Context, s Step) error {
	if h.failed.CompareAndSwap(false, true) {
		return errKilled
	}
	return h.fakeHost.Keep(ctx, s)
}

func TestWhereTooMuchHasFailedAlreadyNothingBegins(t *testing.T) {
	h := &fakeHost{steps: []Step{{Address: "a[2]", Try: 1, State: Failed, Failure: &Failure{Node: "a[2]", Kind: "broke"}}}}
	ended := walked(t, `{start: a, nodes: {a: {map: "${{ [1, 2, 3, 4] }}", parallel: 1, run: u}}}`, nil, h)
	if ended.Failure == nil || ended.Failure.Kind != "broke" || len(h.started) > 0 {
		t.Errorf("%v, %v", ended.Failure, h.started)
	}
}

func TestACallThatFailedAsTheWalkWasCancelledIsLeftOpen(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	h := &fakeHost{unit: func(context.Context, Call) (any, error) {
		cancel(why)
		return nil, failingUnit("cancelled")
	}}
	_, err := flowOf(t, `{start: a, nodes: {a: {run: u, next: {error: end}}}}`).Walk(ctx, nil, nil, h)
	if !errors.Is(err, why) || len(h.steps) > 0 {
		t.Errorf("%v, %s", err, went(h.steps))
	}
}
