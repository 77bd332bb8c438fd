package expr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type doc struct{ Name string }

var vars = Vars{
	"input": map[string]any{"n": int64(3), "name": "x", "list": []any{int64(1), int64(2), 2.5}, "file": doc{"a"}, "paren": "(", "evil": "${{ input.n }}", "deep": map[string]any{"a": nil}},
	"state": map[string]any{},
	"item":  "i",
}

func eval(t *testing.T, value any) (any, error) {
	t.Helper()
	template, findings := Source{}.Parse(value, "/x")
	if findings != nil {
		t.Fatalf("%v: %v", value, findings)
	}
	return template.Eval(t.Context(), vars)
}

func TestWhatExpressionsGive(t *testing.T) {
	for text, want := range map[string]any{
		"plain":                                        "plain",
		"${{ input.n }}":                               int64(3),
		"${{input.n}}":                                 int64(3),
		"a ${{ input.n }} b":                           "a 3 b",
		"${{ input.n }}${{ input.n }}":                 "33",
		" ${{ input.n }}":                              " 3",
		"$${{ input.n }}":                              "${{ input.n }}",
		"$${{ ${{ input.n }}":                          "${{ 3",
		"${{ input.evil }}":                            "${{ input.n }}",
		"${{ input.evil }}!":                           "${{ input.n }}!",
		"${{ input.n + 1 }}":                           int64(4),
		"${{ input.n / 2 }}":                           1.5,
		"${{ 6 / 2 }}":                                 int64(3),
		"${{ 9007199254740993 + 0 }}":                  int64(9007199254740993),
		"${{ state.x ?? [] }}":                         []any{},
		"${{ state.x }}":                               nil,
		"a${{ state.x }}b":                             "ab",
		"${{ state.error?.message }}":                  nil,
		"${{ input.file }}":                            doc{"a"},
		"${{ [input.file] }}":                          []any{doc{"a"}},
		"${{ input.file.Name }}":                       "a",
		"${{ input.file == input.file }}":              true,
		`${{ input.n >= 2 ? "good" : "again" }}`:       "good",
		`${{ {"a": {"b": 1}} }}`:                       map[string]any{"a": map[string]any{"b": int64(1)}},
		`${{ {a:{b:{}}}}}`:                             map[string]any{"a": map[string]any{"b": map[string]any{}}},
		`${{ "}}" + '}}' }}`:                           "}}}}",
		"${{ filter(input.list, # != nil) }}":          []any{int64(1), int64(2), 2.5},
		"${{ map(1..3, # * 2) }}":                      []any{int64(2), int64(4), int64(6)},
		"${{ 1..3 }}":                                  []any{int64(1), int64(2), int64(3)},
		"${{ len(input.list) }}":                       int64(3),
		"${{ sum(input.list) }}":                       5.5,
		"${{ sum(input.list, # * 2) }}":                int64(11),
		"${{ chunk(input.list, 2) }}":                  []any{[]any{int64(1), int64(2)}, []any{2.5}},
		"${{ chunk([], 2) }}":                          []any{},
		"${{ uniq([1, 1.0, '1', [1], [1.0], nil]) }}":  []any{int64(1), "1", []any{int64(1)}, nil},
		"${{ keys({b: 1, a: 2}) }}":                    []any{"a", "b"},
		"${{ values({b: 1, a: 2}) }}":                  []any{int64(2), int64(1)},
		"${{ toPairs({b: 1}) | fromPairs() }}":         map[string]any{"b": int64(1)},
		"${{ groupBy([1, 2, 3], # % 2) }}":             map[string]any{"1": []any{int64(1), int64(3)}, "0": []any{int64(2)}},
		"${{ split('a,b', ',') | join('-') }}":         "a-b",
		"${{ toJSON({a: [1, nil]}) }}":                 `{"a":[1,null]}`,
		"${{ fromJSON('{\"a\": 9007199254740993}') }}": map[string]any{"a": int64(9007199254740993)},
		"${{ [1, [2]] == [1.0, [2]] }}":                true,
		"${{ {a: 1} != {a: 2} }}":                      true,
		"${{ [1] in [[2], [1]] }}":                     true,
		"${{ 'n' in input }}":                          true,
		"${{ 'z' in input }}":                          false,
		"${{ 'aab' matches '^a+b$' }}":                 true,
		"${{ max(input.list) }}":                       2.5,
		"${{ min(4, 2) }}":                             int64(2),
		"${{ mean([1, 2]) }}":                          1.5,
		"${{ median([3, 1, 2]) }}":                     int64(2),
		"${{ flatten([1, [2, [3]]]) }}":                []any{int64(1), int64(2), int64(3)},
		"${{ let a = 2; a * a }}":                      int64(4),
		"${{ 'a' + 'b' }}":                             "ab",
		"${{ replace('aa', 'a', 'bc') }}":              "bcbc",
		"${{ trim(' a ') + trim('xax', 'x') }}":        "aa",
		"${{ string(1.5) + string(nil) }}":             "1.5nil",
		"${{ reduce(1..4, #acc + #, 0) }}":             int64(10),
		"${{ sortBy([3, 1], #) }}":                     []any{int64(1), int64(3)},
		"${{ -input.n }}":                              int64(-3),
		"${{ item /* a comment }} */ }}":               "i",
		"ä${{ 'ö' }}ü":                                 "äöü",
		"${{ input.list }}":                            vars["input"].(map[string]any)["list"],
	} {
		got, err := eval(t, text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
}

func TestValuesAroundTexts(t *testing.T) {
	got, err := eval(t, map[string]any{"a": []any{"${{ input.n }}", true, nil}, "b": 7})
	want := map[string]any{"a": []any{int64(3), true, nil}, "b": int64(7)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestWhatCantBeAnExpression(t *testing.T) {
	for text, want := range map[string]string{
		"a ${{ filter(x,":           "/x: column 3: a ${{ isn't closed by }} (quote the whole value",
		"${{ ":                      "isn't closed",
		"${{ 'a ":                   "isn't closed",
		"${{ }}":                    "column 1: an expression is empty",
		"${{}}":                     "is empty",
		"${{ 'a }}":                 "literal not terminated",
		"${{ a) }}":                 "column 6: unexpected token",
		"${{ a } b }}":              "column 7: a } without its {",
		"a\nb ${{ 1 + }}":           "line 2, column",
		"${{ nope(1) }}":            "there is no function \"nope\"",
		"${{ now() }}":              "there is no function \"now\"",
		"${{ date('2020-01-01') }}": "there is no function",
		"${{ ::now() }}":            "there is no function",
		"${{ chunks([], 1) }}":      "did you mean chunk?",
		"${{ chunk([]) }}":          "chunk takes 2 arguments, not 1",
		"${{ input.f(1) }}":         "only functions can be called",
		"${{ $env }}":               "$env",
		"${{ a == null }}":          "write nil",
		"${{ b'a' }}":               "no bytes",
		"${{ 'a' + 1 }}":            "mismatched types string and int",
		"${{ " + strings.Repeat("1+", 700) + "1 }}":  "more than 1000 parts",
		"${{ " + strings.Repeat("1 ", 4000) + "1 }}": "longer than 4096 bytes",
	} {
		template, findings := Source{}.Parse(text, "/x")
		if len(findings) != 1 || !strings.Contains(findings[0].String(), want) {
			t.Errorf("%.40q: %v, want %s", text, findings, want)
			continue
		}
		if _, err := template.Eval(t.Context(), vars); err == nil {
			t.Errorf("%.40q was evaluated", text)
		}
	}
}

func TestWhatFails(t *testing.T) {
	for text, want := range map[string]string{
		"${{ state.a.b }}":                      "/x, column 13: cannot fetch b from nothing",
		"ab ${{ input.n + 'x' }}":               "column 16: + expects two numbers or two texts, got a number and a text",
		"${{ input.name ? 1 : 2 }}":             "expected a truth value, got a text",
		"${{ filter(input.list, input.name) }}": "truth value",
		"a ${{ input.file }}":                   "a file can't stand in a text",
		"${{ 0 / 0 }}":                          "a finite number",
		"${{ input.n / 0 }}":                    "a finite number",
		"${{ 9223372036854775807 + input.n }}":  "below 2^63",
		"${{ -9223372036854775807 - input.n }}": "below 2^63",
		"${{ 4611686018427387904 * input.n }}":  "below 2^63",
		"${{ input.list[9] }}":                  "index out of range",
		"${{ split(input.n, ',') }}":            "split expects a text, got a number",
		"${{ join([1]) }}":                      "join expects a text, got a number",
		"${{ fromJSON('{') }}":                  "fromJSON expects JSON",
		"${{ chunk(input.list, 0) }}":           "from 1",
		"${{ sum(['a', 'b']) }}":                "sum expects numbers",
		"${{ 'a' matches input.paren }}":        "regular expression",
		"${{ groupBy([1, '1'], #) }}":           "two groups",
	} {
		_, err := eval(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestNoFailureQuotesAValue has failures of which the library, or a parser, would quote one.
func TestNoFailureQuotesAValue(t *testing.T) {
	const canary = "kanarienvogel"
	vars := Vars{"state": map[string]any{
		"word": canary, "object": map[string]any{canary: map[string]any{"b": canary}}, "list": []any{canary}, "json": `{"` + canary + `": 1, "` + canary + `": 2}`,
	}}
	for _, text := range []string{
		"${{ int(state.word) }}", "${{ float(state.word) }}", "${{ state.list[state.word] }}", "${{ state.word[state.word] }}", "${{ state.word.b.c }}",
		"${{ state.object.x.y }}", "${{ state.object[1:2] }}", "${{ fromJSON(state.word) }}", "${{ fromJSON(state.json) }}", "${{ 'a' matches ('(' + state.word) }}",
		"${{ state.word + 1 }}", "${{ groupBy([1, '1'], state.word) }}", "${{ chunk(state.word, 1) }}", "${{ state.word ? 1 : 2 }}", "${{ take(state.list, state.word) }}",
		"${{ min(state.list) }}", "${{ fromBase64(state.word + '!') }}", "${{ fromPairs([state.list]) }}", "${{ state.word > 1 }}", "${{ 1 in state.word }}",
		"${{ split(state.word, 1) }}", "${{ repeat(state.word, -1) }}", "${{ sum(state.list) }}", "${{ sort([1, state.word]) }}", "${{ -state.word }}", "${{ state.word() }}",
	} {
		template, findings := Source{}.Parse(text, "/x")
		if findings != nil {
			continue
		}
		if _, err := template.Eval(t.Context(), vars); err != nil && strings.Contains(fmt.Sprint(err), canary) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestReferences(t *testing.T) {
	for text, want := range map[string]string{
		"${{ state.a.b + input.c[0] }}":           "state.a.b input.c.0",
		"${{ state.x ?? [] }} ${{ item }}":        "state.x? item",
		"${{ state.error?.message }}":             "state.error.message?",
		"${{ state.a != nil && nil == input.b }}": "state.a? input.b?",
		"${{ input[state.key].z }}":               "input state.key",
		"${{ let y = out.a; y.b + len(out) }}":    "out.a out",
		"${{ map(state.l, #.x + index) }}":        "state.l index",
		"${{ filter(state.l, .ok) }}":             "state.l",
		"plain":                                   "",
	} {
		template, findings := Source{}.Parse(text, "/x")
		var got []string
		for _, r := range template.References() {
			guard := ""
			if r.Guarded {
				guard = "?"
			}
			got = append(got, strings.Join(r.Path, ".")+guard)
		}
		if strings.Join(got, " ") != want || findings != nil {
			t.Errorf("%s: %q, want %q %v", text, got, want, findings)
		}
	}
}

func TestOutcomes(t *testing.T) {
	for text, want := range map[string]string{
		"a":                                "[a] true",
		`${{ input.n > 1 ? "a" : "b" }}`:   "[a b] true",
		`${{ x ? "a" : (y ? "b" : "c") }}`: "[a b c] true",
		`${{ x ? "a" : out.action }}`:      "[a] false",
		`${{ out.action }}`:                "[] false",
		`a${{ out.action }}`:               "[] false",
		`${{ if x { "a" } else { "b" } }}`: "[a b] true",
	} {
		template, findings := Source{}.Parse(text, "/x")
		values, all := template.Outcomes()
		if got := fmt.Sprint(values, all); got != want || findings != nil {
			t.Errorf("%s: %s, want %s %v", text, got, want, findings)
		}
	}
}
