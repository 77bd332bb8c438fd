package flow

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

const rerunnable = `{start: a, nodes: {
  a: {run: u, with: {at: a}, next: m},
  m: {map: "${{ [0, 1, 2, 3] }}", tolerate: 100%, run: u, with: {at: "${{ 'm' + string(item) }}"}, set: {m: "${{ out }}"}, next: b},
  b: {branches: {x: {run: u, with: {at: x}}, y: {map: "${{ [0, 1] }}", flow: {nodes: {i: {run: u, with: {at: "${{ 'i' + string(item) }}"}, next: j}, j: {run: u, with: {at: "${{ 'j' + string(item) }}"}}}}}}, next: f},
  f: {flow: {start: p, nodes: {p: {run: u, with: {at: p}, next: q}, q: {run: u, with: {at: q}, action: '${{ visits.q < 2 ? "back" : "on" }}', next: {back: p, on: end}}}}, next: z},
  z: {run: u, with: {at: z}}}}`

// TestARerunRunsWhatComesAfterAnAddress walks over what is taken over, and sees what is called.
func TestARerunRunsWhatComesAfterAnAddress(t *testing.T) {
	at := func(c Call) string { return c.Input["at"].(string) }
	broken := map[string]bool{"m1": true, "m3": true}
	first := &fakeHost{unit: func(_ context.Context, c Call) (any, error) {
		if broken[at(c)] {
			return nil, failingUnit("broke")
		}
		return at(c), nil
	}}
	if ended := walked(t, rerunnable, nil, first); ended.Failure != nil {
		t.Fatal(ended.Failure)
	}
	for from, want := range map[string]string{
		"a":        "a m0 m1 m2 m3 x i0 j0 i1 j1 p q p q z",
		"m":        "m0 m1 m2 m3 x i0 j0 i1 j1 p q p q z",
		"m[2]":     "m2 x i0 j0 i1 j1 p q p q z",
		"b":        "x i0 j0 i1 j1 p q p q z",
		"b/x":      "x p q p q z",
		"b/y":      "i0 j0 i1 j1 p q p q z",
		"b/y[1]":   "i1 j1 p q p q z",
		"b/y[1]/j": "j1 p q p q z",
		"f":        "p q p q z",
		"f/q":      "q p q z",
		"f/p#2":    "p q z",
		"z":        "z",
		"failed":   "m1 m3 x i0 j0 i1 j1 p q p q z",
	} {
		t.Run("from "+from, func(t *testing.T) {
			f := flowOf(t, rerunnable)
			kept := f.FromFailed(first.steps)
			if from != "failed" {
				var err error
				if kept, err = f.From(first.steps, from); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			h := &fakeHost{steps: kept}
			h.unit = func(_ context.Context, c Call) (any, error) {
				h.mu.Lock()
				defer h.mu.Unlock()
				got = append(got, at(c))
				return at(c), nil
			}
			if ended, err := f.Walk(t.Context(), nil, slices.Clone(kept), h); err != nil || ended.Failure != nil {
				t.Fatal(err, ended.Failure)
			}
			wanted := strings.Fields(want)
			slices.Sort(wanted)
			slices.Sort(got)
			if !slices.Equal(wanted, got) {
				t.Errorf("it ran %v, want %v", got, wanted)
			}
		})
	}
}

func TestARerunSetsWhatItIsToldTo(t *testing.T) {
	text := `{start: a, nodes: {a: {set: {n: 1}, next: b}, b: {flow: {nodes: {i: {set: {m: "${{ state.n * 10 }}"}, next: j}, j: {set: {m: "${{ state.m + 1 }}"}}}}, set: {n: "${{ out.m }}"}, next: c}, c: {}}, output: {n: "${{ state.n }}"}}`
	h := &fakeHost{}
	walked(t, text, nil, h)
	f := flowOf(t, text)
	rerun := func(kept []Step, from string, values map[string]any) (*fakeHost, any) {
		t.Helper()
		kept, err := f.From(kept, from)
		if err != nil {
			t.Fatal(err)
		}
		set, err := f.Set(from, values)
		if err != nil {
			t.Fatal(err)
		}
		h := &fakeHost{steps: append(kept, set)}
		ended := walked(t, text, nil, h)
		if ended.Counts.Steps != 5 {
			t.Errorf("it counts %d steps", ended.Counts.Steps)
		}
		return h, ended.Output["n"]
	}
	if _, n := rerun(h.steps, "a", map[string]any{"n": int64(5)}); n != int64(11) {
		t.Errorf("before the first: %v", n)
	}
	if _, n := rerun(h.steps, "c", map[string]any{"n": int64(5)}); n != int64(5) {
		t.Errorf("before the last: %v", n)
	}
	inside, n := rerun(h.steps, "b/j", map[string]any{"m": int64(7), "$x": aFile})
	if n != int64(8) {
		t.Errorf("inside: %v", n)
	}
	if _, n := rerun(inside.steps, "b/j", map[string]any{"$x": nil}); n != int64(11) {
		t.Errorf("a rerun of a rerun: %v", n)
	}
	if _, n := rerun(inside.steps, "c", map[string]any{"x": nil}); n != int64(8) {
		t.Errorf("a rerun of a rerun from a later node: %v", n)
	}
	for _, none := range []string{"x", "", "b/x", "b[1]", "b/i=", "a/i"} {
		if _, err := f.Set(none, nil); err == nil {
			t.Errorf("it can be set before %q", none)
		}
	}
}

func TestARerunFromWhereTheFlowDoesntComeIsRefused(t *testing.T) {
	h := &fakeHost{}
	walked(t, `{start: a, nodes: {a: {next: b}, b: {flow: {nodes: {i: {}}}, next: c}, c: {}}}`, nil, h)
	for name, c := range map[string]struct{ flow, from, hint string }{
		"a node that is gone":          {`{start: a, nodes: {a: {next: b}, b: {}}}`, "c", "from b"},
		"an edge that is another":      {`{start: a, nodes: {a: {next: c}, b: {next: c}, c: {next: b}}}`, "b#2", "from c#2"},
		"a node that came between":     {`{start: a, nodes: {a: {next: n}, n: {next: c}, c: {}}}`, "c", "from n"},
		"an inside that is no more":    {`{start: a, nodes: {a: {next: b}, b: {}}}`, "b/i", "from b"},
		"an item of what isn't a map":  {`{start: a, nodes: {a: {next: b}, b: {}}}`, "b[1]", "from b"},
		"a visit that there wasn't":    {`{start: a, nodes: {a: {next: b}, b: {}}}`, "b#3", "from b"},
		"a node inside of an item":     {`{start: a, nodes: {a: {map: "${{ [1] }}", flow: {nodes: {i: {}}}}}}`, "a/i", "from a"},
		"something that isn't a place": {`{start: a, nodes: {a: {}}}`, "a//b", "flow steps"},
	} {
		_, err := flowOf(t, c.flow).From(h.steps, c.from)
		if err == nil || !strings.Contains(fault.Public(err).Hint, c.hint) {
			t.Errorf("%s: %v, %v", name, err, fault.Public(err).Hint)
		}
	}
}

func TestARerunDoesntComePastAFailure(t *testing.T) {
	h := &fakeHost{unit: told}
	text := `{start: a, nodes: {a: {run: u, with: {fail: broke}, next: b}, b: {}}}`
	walked(t, text, nil, h)
	f := flowOf(t, text)
	if _, err := f.From(h.steps, "b"); err == nil || !strings.Contains(fault.Public(err).Hint, "from a") {
		t.Error(err)
	}
	if kept := f.FromFailed(h.steps); len(kept) > 0 {
		t.Errorf("%s is taken over", went(kept))
	}
}

func FuzzAddresses(f *testing.F) {
	for _, seed := range []string{"a", "a#2/b[3]/c", "a[", "a]", "a#0", "/", "a[[1]"} {
		f.Add(seed)
	}
	fuzzedFlow := flowOf(f, rerunnable)
	kept := []Step{{Address: "a", Try: 1, State: Done, Action: Default}}
	fuzzbound.Run(f, func(t *testing.T, address string) {
		steps := append(slices.Clone(kept), Step{Address: address, Try: 1, State: Failed})
		if taken, err := fuzzedFlow.From(steps, address); err == nil && len(taken) > 1 {
			t.Errorf("%q is taken over", address)
		}
		fuzzedFlow.FromFailed(steps)
	})
}
