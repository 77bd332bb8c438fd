package expr

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// hostile are variables that a callee could have given.
func hostile() Vars {
	list := make([]any, 100_000)
	for i := range list {
		list[i] = int64(i)
	}
	deep := any([]any{})
	for range 50 {
		deep = []any{deep}
	}
	return Vars{"input": map[string]any{
		"list": list, "text": strings.Repeat("a", 1<<20), "deep": deep, "pattern": strings.Repeat("(a|b){900}", 3),
		"texts": []any{"a", "b", strings.Repeat("c", 1<<20)},
	}}
}

// TestCostsAreBounded has expressions that would take hours or all memory.
func TestCostsAreBounded(t *testing.T) {
	vars := hostile()
	for name, source := range map[string]string{
		"nested predicates":       "all(input.list, any(input.list, # < 0) == false)",
		"three deep":              "count(input.list, 0 < count(input.list, 0 < count(input.list, true)))",
		"map in map":              "map(input.list, [map(input.list, #)])",
		"reduce over text":        "reduce(1..1000, #acc + #acc, 'aaaa')",
		"text that doubles":       "let a = input.text; let b = a + a; let c = b + b; let d = c + c; let e = d + d; len(e)",
		"lists that double":       doubling("[x, x]", 60) + "x",
		"JSON of doubled lists":   doubling("[x, x]", 40) + "toJSON(x)",
		"flattened":               doubling("[x, x]", 40) + "flatten(x)",
		"compared with itself":    doubling("[x, x]", 40) + "x == x",
		"found in itself":         doubling("[x, x]", 40) + "x in [x, [x]]",
		"objects that double":     doubling("{a: x, b: x}", 40) + "x",
		"uniq of doubled lists":   doubling("[x, x]", 40) + "uniq([x, x])",
		"repeated":                "repeat(input.text, 1000000)",
		"replaced":                "replace(input.text, '', input.text)",
		"joined":                  "join(map(1..9999, input.text), input.text)",
		"the same many times":     "map(1..900000, input.list)",
		"a range":                 "1..9000000000000",
		"a pattern":               "input.text matches input.pattern",
		"many patterns":           "filter(input.list, input.text matches '^(a|b)*c$')",
		"sorted again and again":  "map(input.list, sort(input.list))",
		"summed texts":            "sum(input.texts)",
		"a set of characters":     "trim(input.text, input.text)",
		"flat lists joined":       "reduce(input.list, concat(#acc, input.list), [])",
		"split":                   "map(1..1000, split(input.text, ''))",
		"grouped again and again": "map(input.list, groupBy(input.list, #))",
		"found again and again":   "filter(input.list, -1 in input.list)",
	} {
		t.Run(name, func(t *testing.T) {
			template, findings := Source{}.Parse("${{ "+source+" }}", "/x")
			if findings != nil {
				t.Fatal(findings)
			}
			value, err := template.Eval(t.Context(), vars)
			if err == nil {
				t.Fatalf("a %T", value)
			}
			if message := err.Error(); len(message) > 600 {
				t.Errorf("a message of %d bytes", len(message))
			}
		})
	}
}

// TestOnlyTimeOfTheProcessorCounts holds it with a thread that sleeps, which waits as one does on
// a busy machine, and then works.
func TestOnlyTimeOfTheProcessorCounts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the time of one thread")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := newMeter(t.Context())
	time.Sleep(maxTime + 10*time.Millisecond)
	if err := m.tick(); err != nil {
		t.Fatalf("after a wait: %v", err)
	}
	err := m.tick()
	for err == nil {
		err = m.tick()
	}
	if used := threadTime() - m.began; !errors.Is(err, errTime) || used < maxTime {
		t.Errorf("after %v of work: %v", used, err)
	}
}

// doubling declares a variable x that is made of itself, many times over.
func doubling(of string, times int) string {
	var b strings.Builder
	name := "input.deep"
	for i := range times {
		next := "y" + strconv.Itoa(i)
		b.WriteString("let " + next + " = " + strings.ReplaceAll(of, "x", name) + "; ")
		name = next
	}
	return b.String() + "let x = " + name + "; "
}

func TestTheEndOfAContextEndsAnEvaluation(t *testing.T) {
	cause := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	template, _ := Source{}.Parse("${{ 1 }}", "/x")
	if _, err := template.Eval(ctx, nil); !errors.Is(err, cause) {
		t.Error(err)
	}
}

func TestAKeyOfTheVariablesCantBeReached(t *testing.T) {
	for _, source := range []string{"$env", "$env[' meter']", "get($env, ' meter')"} {
		if _, findings := (Source{}).Parse("${{ "+source+" }}", "/x"); findings == nil {
			t.Errorf("%s is allowed", source)
		}
	}
}

func TestValuesAreShared(t *testing.T) {
	list := []any{int64(1), map[string]any{"a": "b"}}
	template, _ := Source{}.Parse("${{ input.list }}", "/x")
	got, err := template.Eval(t.Context(), Vars{"input": map[string]any{"list": list}})
	if err != nil || &got.([]any)[0] != &list[0] {
		t.Errorf("%v: what needs no change is copied", err)
	}
	list[0] = 1.0
	got, err = template.Eval(t.Context(), Vars{"input": map[string]any{"list": list}})
	if diff := cmp.Diff([]any{int64(1), map[string]any{"a": "b"}}, got); err != nil || diff != "" || list[0] != 1.0 {
		t.Errorf("%v %v %s", list, err, diff)
	}
}

// FuzzExpressions holds that every text is a template that can be evaluated or is refused, and
// that a result is JSON which is the same after it was written and read.
func FuzzExpressions(f *testing.F) {
	for _, seed := range []string{
		"${{ input.n + 1 }}", "a ${{ map(input.list, # * 2) }} $${{", `${{ {a: {b: 1}} | toPairs() }}`, "${{ let x = 1; x ?? [x] }}",
		"${{ reduce(1..3, #acc + #, 0) }}", "${{ input.text matches 'a+' ? groupBy(input.list, # % 2) : state?.x }}", "${{ chunk(uniq(flatten([[1]])), 2) }}",
		"${{ sortBy(input.list, -#)[0:2] }}", "${{ \"ä\"[0:1] }}", "${{ fromJSON('[1e3]') }}", "${{ if true { 1 } else { 2 } }}",
	} {
		f.Add(seed)
	}
	vars := Vars{"input": map[string]any{"n": int64(3), "list": []any{int64(3), 1.5, int64(2)}, "text": "aab", "none": nil}, "state": map[string]any{}}
	fuzzbound.Run(f, func(t *testing.T, text string) {
		template, findings := Source{}.Parse(text, "/x")
		template.References()
		template.Outcomes()
		value, err := template.Eval(t.Context(), vars)
		if err != nil {
			return
		}
		if findings != nil {
			t.Fatalf("%v, and it was evaluated", findings)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(strings.NewReader(string(raw)))
		decoder.UseNumber()
		var again any
		if err := decoder.Decode(&again); err != nil {
			t.Fatal(err)
		}
		if again, err = Values(again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(value, again); diff != "" && strings.Contains(text, opening) {
			t.Error(diff)
		}
	})
}
