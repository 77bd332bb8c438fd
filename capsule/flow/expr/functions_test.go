package expr

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestFunctionsAtTheirEdges(t *testing.T) {
	for text, want := range map[string]any{
		"chunk([1, 2, 3], 3)":                       []any{[]any{int64(1), int64(2), int64(3)}},
		"chunk([1], 9223372036854775807)":           []any{[]any{int64(1)}},
		"chunk([1, 2], 1.0)":                        []any{[]any{int64(1)}, []any{int64(2)}},
		"uniq([])":                                  []any{},
		"uniq([{a: 1}, {a: 1.0}, '{\"a\":1}'])":     []any{map[string]any{"a": int64(1)}, `{"a":1}`},
		"uniq([nil, false, 0, ''])":                 []any{nil, false, int64(0), ""},
		"flatten([[], [[]], 1])":                    []any{int64(1)},
		"flatten(['a', {b: [1]}])":                  []any{"a", map[string]any{"b": []any{int64(1)}}},
		"keys({})":                                  []any{},
		"toPairs({b: 1, a: nil})":                   []any{[]any{"a", nil}, []any{"b", int64(1)}},
		"fromPairs([['a', 1], ['a', 2]])":           map[string]any{"a": int64(2)},
		"fromPairs([])":                             map[string]any{},
		"split('a', '')":                            []any{"a"},
		"split('', ',')":                            []any{""},
		"split('ab', '')":                           []any{"a", "b"},
		"join([])":                                  "",
		"join(['a', 'b'])":                          "ab",
		"join(['a', '', 'b'], ', ')":                "a, , b",
		"replace('aaa', 'a', '')":                   "",
		"replace('ab', '', '-')":                    "-a-b-",
		"repeat('ab', 0)":                           "",
		"repeat('', 4194304)":                       "",
		"repeat('a', 2.0)":                          "aa",
		"len(repeat('a', 4194304))":                 int64(4 << 20),
		"trim('  a ')":                              "a",
		"trim('aba', '')":                           "aba",
		"trim('abxab', 'ba')":                       "x",
		"string('a')":                               "a",
		"string(true)":                              "true",
		"string([1.0, nil])":                        "[1,null]",
		"string(9007199254740993)":                  "9007199254740993",
		"toJSON('<&>')":                             `"<&>"`,
		"toJSON(2.0)":                               "2",
		"fromJSON('1e2')":                           int64(100),
		"fromJSON(' null ')":                        nil,
		"min([])":                                   nil,
		"max([], [])":                               fault.Input, // two lists aren't numbers
		"min(2, 1.5, 3)":                            1.5,
		"max(1, 1.0)":                               int64(1),
		"max([9007199254740992, 9007199254740993])": int64(9007199254740993),
		"min(2.5, 1)":                               int64(1),
		"max(1, 2.5)":                               2.5,
		"max(2.5, 1)":                               2.5,
		"input.n == 2.5":                            false,
		"[2.5] == input.list":                       false,
		"len('a' matches repeat('a', 4096) ? '' : 'ab')": int64(2),
		"mean([])":                                            nil,
		"mean(1, 2, 4.5)":                                     2.5,
		"median([4, 1, 3, 2])":                                2.5,
		"findLast([1, 2, 3], # < 3)":                          int64(2),
		"findLast([1, 2], # > 3)":                             nil,
		"findLast([], true)":                                  nil,
		"findLastIndex([1, 2, 1, 3], # == 1)":                 int64(2),
		"findLastIndex([1], # == 2)":                          nil,
		"1 + findLastIndex([5, 5], # == findLast([5], true))": int64(2),
		"[findLast(map([1, 2], # * 2), # > 0), findLast([{a: [1, 2]}], len(.a) == 2).a]": []any{int64(4), []any{int64(1), int64(2)}},
		"median(9007199254740993)":                        int64(9007199254740993),
		"median([1, 9007199254740993, 9007199254740995])": int64(9007199254740993),
		"sum([])":                  int64(0),
		"sum([1, 2.5])":            3.5,
		"1 in input.none":          false,
		"1.0 in [1]":               true,
		"'1' in input.list":        false,
		"nil in [nil]":             true,
		"{a: [1]} in [{a: [1.0]}]": true,
		"'a' in {a: nil}":          true,
		"[1, 2] == [1]":            false,
		"[1, 2] == [1, 3]":         false,
		"input.list == input.deep": false,
		"input.deep == input.list": false,
		"{a: 1} == {b: 1}":         false,
		"{a: 1} == {a: 1, b: 2}":   false,
		"{a: [1, {b: nil}]} == {a: [1.0, {b: nil}]}": true,
		"input.n == input.name":                      false,
		"input.name == input.n":                      false,
		"input.deep.a == input.deep.b":               true,
		"input.list != input.list":                   false,
		"input.none matches 'a'":                     false,
		"'a' matches input.none":                     false,
		"'xay' matches 'a'":                          true,
		"'a' matches input.dot":                      true,
		"9223372036854775806 + 1":                    int64(9223372036854775807),
		"-9223372036854775807 - 1":                   int64(-9223372036854775807 - 1),
		"4611686018427387903 * 2":                    int64(9223372036854775806),
		"0 * -9223372036854775807":                   int64(0),
		"1.5 + input.n":                              4.5,
		"input.n - 0.5":                              2.5,
		"0.5 * input.n":                              1.5,
		"groupBy(['a', nil, 'a'], #)":                map[string]any{"a": []any{"a", "a"}, "": []any{nil}},
		"groupBy([1, 2], # > 1)":                     map[string]any{"true": []any{int64(2)}, "false": []any{int64(1)}},
		"map([1, 2], ({n: #, i: #index}))":           []any{map[string]any{"n": int64(1), "i": int64(0)}, map[string]any{"n": int64(2), "i": int64(1)}},
		"reduce([1, 2], #acc * #, 9007199254740993)": int64(18014398509481986),
		"first([])":                                  nil,
		"\"ä\"[0:1]":                                 "\uFFFD", // it cuts a letter
		"int('7') + int(7.9)":                        int64(14),
	} {
		template, findings := Source{}.Parse("${{ "+text+" }}", "/x")
		if findings != nil {
			t.Errorf("%s: %v", text, findings)
			continue
		}
		got, err := template.Eval(t.Context(), Vars{"input": map[string]any{"n": int64(3), "name": "x", "list": []any{int64(1)}, "deep": map[string]any{"a": nil}, "dot": ".", "none": nil}})
		if _, fails := want.(fault.Kind); fails {
			if err == nil {
				t.Errorf("%s: %v", text, got)
			}
			continue
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
}

func TestFunctionsSayWhatTheyExpect(t *testing.T) {
	long := strings.Repeat("a", maxPattern)
	cutset := strings.Repeat("a", maxCutset)
	for text, want := range map[string]string{
		"chunk(input.n, 1)":             "chunk expects a list, got a number",
		"chunk([], input.name)":         "chunk expects a whole number from 1, got a text",
		"chunk([], 1.5)":                "chunk expects a whole number from 1, got a number",
		"chunk([], -1)":                 "chunk expects a whole number from 1",
		"uniq({})":                      "uniq expects a list, got an object",
		"uniq(nil)":                     "uniq expects a list, got nothing",
		"flatten('a')":                  "flatten expects a list, got a text",
		"keys([])":                      "keys expects an object, got a list",
		"values(true)":                  "values expects an object, got a truth value",
		"toPairs(input.file)":           "toPairs expects an object, got a file",
		"fromPairs({})":                 "fromPairs expects a list, got an object",
		"fromPairs([1])":                "fromPairs expects a list, got a number",
		"fromPairs([['a']])":            "a key and a value, got one of 1 items",
		"fromPairs([['a', 1, 2]])":      "a key and a value, got one of 3 items",
		"fromPairs([[1, 'a']])":         "fromPairs expects a text, got a number",
		"split('a', 1)":                 "split expects a text, got a number",
		"join('a')":                     "join expects a list, got a text",
		"join([], 1)":                   "join expects a text, got a number",
		"join(['a', nil])":              "join expects a text, got nothing",
		"replace(1, 'a', 'b')":          "replace expects a text, got a number",
		"replace('a', 'a', nil)":        "replace expects a text, got nothing",
		"repeat('a', -1)":               "repeat expects a whole number from 0, got a number",
		"repeat('a', 0.5)":              "repeat expects a whole number from 0",
		"repeat(1, 1)":                  "repeat expects a text, got a number",
		"repeat('a', 4194305)":          errMemory.Error(),
		"repeat('', 4194305)":           errMemory.Error(),
		"trim(1)":                       "trim expects a text, got a number",
		"trim('a', 1)":                  "trim expects a text, got a number",
		"trim('a', '" + cutset + "a')":  "at most 256 bytes of characters, got 257",
		"string(input.file)":            "a file can't stand in a text",
		"fromJSON(1)":                   "fromJSON expects a text, got a number",
		"fromJSON('{\"a\":1,\"a\":2}')": "fromJSON expects JSON, and this text is none",
		"fromJSON('1e999')":             "fromJSON expects JSON",
		"min(nil)":                      "min expects numbers, or a list of them, got nothing",
		"max(1, [2])":                   "max expects numbers, or a list of them, got a list",
		"mean(['a'])":                   "mean expects numbers, or a list of them, got a text",
		"median([1, nil])":              "median expects numbers, or a list of them, got nothing",
		"sum([1, nil])":                 "sum expects numbers, got nothing",
		"sum(input.list, input.name)":   "sum expects numbers, got a text",
		"input.n in input.deep":         "in expects a text, got a number",
		"'a' in input.name":             "in expects a list, got a text",
		"input.n matches 'a'":           "matches expects a text, got a number",
		"'a' matches input.n":           "matches expects a text, got a number",
		"'a' matches (input.paren)":     "matches expects a regular expression: missing closing )",
		"'a' matches ('" + long[:100] + "' + repeat('a', 4000))": "a pattern of at most 4096 bytes, got 4100",
		"input.name - 1":          "- expects two numbers, got a text and a number",
		"input.name - input.name": "- expects two numbers, got a text and a text",
		"input.none * input.n":    "* expects two numbers, got nothing and a number",
		"input.name + input.list": "+ expects two numbers or two texts, got a text and a list",
		"input.min * -1 ":         "below 2^63",
		"-1 * input.min":          "below 2^63",
		"input.min - 1":           "below 2^63",
		"input.min + input.min":   "below 2^63",
		"{a: [0.0 / 0.0]}":        "a finite number",
		"[1e308 * 10]":            "a finite number",
	} {
		template, findings := Source{File: "flow.yaml"}.Parse("${{ "+text+" }}", "/x")
		if findings != nil {
			t.Errorf("%.60s: %v", text, findings)
			continue
		}
		got, err := template.Eval(t.Context(), Vars{"input": map[string]any{
			"n": int64(3), "name": "x", "list": []any{int64(1)}, "deep": map[string]any{}, "file": doc{"a"}, "paren": "(", "none": nil, "min": int64(-9223372036854775807 - 1),
		}})
		if !fault.Is(err, fault.Capsule) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "flow.yaml#/x, column ") {
			t.Errorf("%.60s: %v, %v, want %s", text, got, err, want)
		}
	}
}

func TestEachFunctionSaysHowItIsCalled(t *testing.T) {
	for name, f := range functions {
		if strings.HasPrefix(name, " ") {
			continue
		}
		for _, n := range []int{f.least - 1, f.most + 1} {
			if n < 0 || n > 10 {
				continue
			}
			text := "${{ " + name + "(" + strings.TrimSuffix(strings.Repeat("1, ", n), ", ") + ") }}"
			_, findings := Source{}.Parse(text, "/x")
			if len(findings) != 1 || !strings.Contains(findings[0].Message, name+" takes "+f.count()+", not ") || findings[0].Hint != f.usage {
				t.Errorf("%s: %v", text, findings)
			}
		}
	}
}
