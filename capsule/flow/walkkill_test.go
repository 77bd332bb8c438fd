package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAKilledWalkGoesOnAsIfNothingHadBeen kills walks of random flows at each of their writes,
// before it or after it, and walks on over what was kept.
func TestAKilledWalkGoesOnAsIfNothingHadBeen(t *testing.T) {
	longest := 0
	for seed := range uint64(16) {
		synctest.Test(t, func(t *testing.T) {
			text := randomFlow(seed)
			f := flowOf(t, text)
			whole := randomHost(seed)
			ended, err := f.Walk(t.Context(), randomInput(), nil, whole)
			if err != nil {
				t.Fatal(err)
			}
			longest = max(longest, whole.keeps)
			for k := 1; k <= whole.keeps; k += 1 + whole.keeps/8 {
				h := randomHost(seed)
				h.dieAt, h.lose = k, k%2 == 0
				killedWalk(t, f, h)
				same(t, f, whole, h, ended, fmt.Sprintf("flow %d, killed at write %d of %d\n%s", seed, k, whole.keeps, text))
			}
			h := randomHost(seed)
			for h.dieAt = 1 + whole.keeps/5; killedWalk(t, f, h); h.dieAt = 1 + whole.keeps/5 {
				if h.walks > 20 {
					t.Fatalf("flow %d doesn't come to its end\n%s", seed, text)
				}
			}
			same(t, f, whole, h, ended, fmt.Sprintf("flow %d, killed again and again\n%s", seed, text))
		})
	}
	if longest < 50 {
		t.Errorf("the longest walk wrote only %d times", longest)
	}
}

// killedWalk walks until the host dies, and reports whether it did.
func killedWalk(t *testing.T, f *Flow, h *fakeHost) bool {
	t.Helper()
	_, err := f.Walk(t.Context(), randomInput(), slices.Clone(h.steps), h)
	if err != nil && !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	h.revive()
	return err != nil
}

func same(t *testing.T, f *Flow, whole, h *fakeHost, want Ended, what string) {
	t.Helper()
	got, err := f.Walk(t.Context(), randomInput(), slices.Clone(h.steps), h)
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]any{
		"end":   {want, got},
		"steps": {rows(whole.steps), rows(h.steps)},
		"calls": {slices.Sorted(slices.Values(whole.started)), slices.Sorted(slices.Values(h.started))},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Fatalf("%s: another %s (-want +got):\n%s", what, name, cmp.Diff(pair[0], pair[1]))
		}
	}
}

func randomInput() map[string]any {
	return map[string]any{"s0": int64(1), "s1": int64(2), "s2": []any{int64(3), int64(4)}}
}

// randomHost has units and people whose answers depend on the seed and the key alone.
func randomHost(seed uint64) *fakeHost {
	return &fakeHost{
		unit: func(ctx context.Context, c Call) (any, error) {
			n := hashed(seed, c.Key)
			time.Sleep(time.Duration(n%7) * time.Millisecond)
			if n%4 == 0 {
				return nil, failingUnit([]string{"broke", "timeout", "invalid_input"}[n%3])
			}
			return map[string]any{"x": int64(n % 100), "in": c.Input}, nil
		},
		answer: func(ctx context.Context, q Question) (Answer, error) {
			n := hashed(seed, q.Address)
			if n%3 == 0 && !q.Until.IsZero() {
				<-ctx.Done()
				return Answer{}, context.Cause(ctx)
			}
			return Answer{Action: q.Answers[n%2], By: "me", At: noon}, nil
		},
	}
}

func hashed(seed uint64, text string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, seed, text)
	return h.Sum64() >> 7
}

func randomFlow(seed uint64) string {
	g := generator{rand.New(rand.NewPCG(seed, 1))}
	f := g.scope(2)
	f["output"] = map[string]any{"all": "${{ state }}"}
	text, _ := json.Marshal(f)
	return string(text)
}

type generator struct{ *rand.Rand }

func (g generator) scope(deep int) map[string]any {
	nodes := map[string]any{}
	n := 2 + g.IntN(4)
	for i := range n {
		node := g.work(deep)
		node["set"] = map[string]any{fmt.Sprintf("s%d", g.IntN(2)): fmt.Sprintf("${{ visits.n%d + %d }}", i, g.IntN(9)), fmt.Sprintf("k%d", i): "${{ [out, errors, run] }}"}
		g.edges(node, i, n)
		nodes[fmt.Sprintf("n%d", i)] = node
	}
	return map[string]any{"start": "n0", "nodes": nodes}
}

// edges has a node go on to the next one, and perhaps back once.
func (g generator) edges(node map[string]any, i, n int) {
	on := "end"
	if i+1 < n {
		on = fmt.Sprintf("n%d", i+1)
	}
	edges := map[string]any{"default": on, "approve": on, "reject": on, "on": on, "error": on, "timeout": on, "exhausted": on}
	if g.IntN(4) == 0 {
		node["action"] = fmt.Sprintf(`${{ visits.n%d < 2 ? "back" : "on" }}`, i)
		edges["back"] = fmt.Sprintf("n%d", g.IntN(i+1))
	}
	if g.IntN(8) == 0 {
		delete(edges, "error")
	}
	node["max_visits"] = 2 + g.IntN(2)
	node["next"] = edges
	if g.IntN(6) == 0 {
		node["when"] = "${{ state.s0 % 2 == 0 }}"
	}
}

func (g generator) work(deep int) map[string]any {
	kinds := 9
	if deep == 0 {
		kinds = 5
	}
	switch g.IntN(kinds) {
	case 0:
		return map[string]any{}
	case 1:
		return map[string]any{"wait": "2s"}
	case 2:
		ask := map[string]any{"ask": "Really ${{ state.s0 }}?"}
		if g.IntN(2) == 0 {
			ask["timeout"] = "1h"
		}
		return ask
	case 3, 4:
		return g.run()
	case 5:
		return map[string]any{"branches": map[string]any{"x": g.bearing(deep - 1), "y": g.bearing(deep - 1), "z": map[string]any{"when": false, "run": "u"}}}
	case 6, 7:
		return g.flow(deep - 1)
	}
	return g.bearing(deep - 1)
}

func (g generator) run() map[string]any {
	node := map[string]any{"run": "u", "with": map[string]any{"a": "${{ state.s0 }}"}}
	if g.IntN(2) == 0 {
		node["retry"] = map[string]any{"tries": 3, "wait": []string{"1ms", "1s"}[g.IntN(2)], "factor": 2}
		if g.IntN(3) == 0 {
			node["retry"] = 2
		}
	}
	if g.IntN(3) == 0 {
		node["fallback"] = map[string]any{"x": "${{ error.kind }}"}
	}
	return node
}

func (g generator) flow(deep int) map[string]any {
	return map[string]any{"flow": g.scope(deep), "scope": []string{"inherit", "shared", "isolated"}[g.IntN(3)], "with": map[string]any{"s0": "${{ state.s0 + 1 }}", "s1": 3}}
}

// bearing returns work that can't fail, so that nothing beside it depends on when it does.
func (g generator) bearing(deep int) map[string]any {
	node := g.run()
	if deep > 0 && g.IntN(2) == 0 {
		node = g.flow(deep)
		node["scope"] = "inherit"
	}
	if g.IntN(2) == 0 {
		node["map"], node["parallel"], node["tolerate"] = "${{ 1..5 }}", 1+g.IntN(4), "100%"
		return node
	}
	node["fallback"] = 0
	return node
}
