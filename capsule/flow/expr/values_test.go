package expr

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNumbersOfJSONAsExpressionsSeeThem(t *testing.T) {
	for text, want := range map[string]any{
		"0": int64(0), "-0": int64(0), "1.0": int64(1), "1e3": int64(1000), "1.5": 1.5, "-2.50": -2.5, "1e-400": int64(0),
		"9223372036854775807": int64(math.MaxInt64), "-9223372036854775808": int64(math.MinInt64), "9007199254740993": int64(9007199254740993),
		"9223372036854775808": float64(1 << 63), "1e300": 1e300, "1e400": nil, "-1e400": nil, "x": nil,
	} {
		got, err := Values(map[string]any{"l": []any{json.Number(text)}})
		if want == nil {
			if err == nil {
				t.Errorf("%s: %v", text, got)
			}
			continue
		}
		if diff := cmp.Diff(map[string]any{"l": []any{want}}, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
}

func TestValuesOfGo(t *testing.T) {
	for name, c := range map[string]struct{ given, want any }{
		"an int":                {7, int64(7)},
		"a large unsigned":      {uint64(1) << 63, float64(1 << 63)},
		"a small unsigned":      {uint64(7), int64(7)},
		"a list of texts":       {[]string{"a"}, []any{"a"}},
		"a list of nothing":     {[]string{}, []any{}},
		"an array":              {[2]int{1, 2}, []any{int64(1), int64(2)}},
		"groups":                {map[any][]any{1: {"a"}, "b": {1}}, map[string]any{"1": []any{"a"}, "b": []any{int64(1)}}},
		"text that isn't UTF-8": {"a\xff", "a\uFFFD"},
		"a file":                {doc{"a"}, doc{"a"}},
	} {
		got, err := Values([]any{c.given})
		if diff := cmp.Diff([]any{c.want}, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	for name, wrong := range map[string]any{
		"a function": func() {}, "a channel": make(chan int), "infinity": math.Inf(-1), "no number": math.NaN(), "groups of one name": map[any][]any{1: nil, "1": nil},
		"groups by a list": map[any][]any{doc{"a"}: nil},
	} {
		if got, err := Values(map[string]any{"a": []any{wrong}}); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAResultIsAsDeepAsItMayBeStored(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, says := range map[string]string{
		nest(maxDepth + 1):                           "",
		nest(maxDepth + 2):                           errDeep.Error(),
		"{a: " + nest(maxDepth) + "}":                "",
		"{a: " + nest(maxDepth+1) + "}":              errDeep.Error(),
		nest(maxDepth+2) + " == " + nest(maxDepth+2): errDeep.Error(),
		"flatten(" + nest(maxDepth+3) + ")":          errMemory.Error(),
		"toJSON(" + nest(maxDepth+2) + ")":           errDeep.Error(),
	} {
		template, findings := Source{}.Parse("${{ "+text+" }}", "/x")
		if findings != nil {
			t.Fatal(findings)
		}
		if _, err := template.Eval(t.Context(), nil); (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%.20s…: %v, want %q", text, err, says)
		}
	}
}

func TestATextOfPartsIsBounded(t *testing.T) {
	vars := Vars{"a": strings.Repeat("a", maxText/2), "b": "b"}
	for text, fits := range map[string]bool{"${{ a }}${{ a }}": true, "x${{ a }}${{ a }}": false, "${{ a }}${{ a }}${{ b }}": false, "${{ [a] }}${{ a }}": false} {
		template, _ := Source{}.Parse(text, "/x")
		got, err := template.Eval(t.Context(), vars)
		if whole, _ := got.(string); (err == nil) != fits || fits && len(whole) != maxText || err != nil && !strings.Contains(err.Error(), errMemory.Error()) {
			t.Errorf("%s: %d bytes, %v", text, len(whole), err)
		}
	}
}

func TestPlacesOfAValue(t *testing.T) {
	source := Source{File: "flow.yaml", LineAt: func(pointer string) int { return len(pointer) }}
	value := map[string]any{"a/b": []any{"x", "${{ }}"}, "ok": "${{ state.x }}", "deep": map[string]any{"~": "one\ntwo ${{ 1 + }}"}, "n": json.Number("1e400")}
	template, findings := source.Parse(value, "/top")
	var got []string
	for _, f := range findings {
		got = append(got, f.File+" "+f.Pointer+" "+strings.SplitAfter(f.Message, ":")[0])
		if f.Line != len(f.Pointer) {
			t.Errorf("%v has the line %d", f, f.Line)
		}
	}
	want := []string{"flow.yaml /top/a~1b/1 column 1:", "flow.yaml /top/deep/~0 line 2, column 12 of the text:", "flow.yaml /top/n the result isn't a finite number"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	ok := template.Members()["ok"]
	if ok.Pointer() != "/top/ok" || !ok.Single() || ok.Text() || ok.Raw() != "${{ state.x }}" || ok.Items() != nil {
		t.Errorf("%+v", ok)
	}
	if refs := ok.References(); len(refs) != 1 || refs[0].Pointer != "/top/ok" || refs[0].Position != "column 5" {
		t.Errorf("%+v", refs)
	}
	if _, err := template.Members()["a/b"].Items()[1].Eval(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("%v", err)
	}
	if _, ok := template.Literal(); ok {
		t.Error("it is a literal")
	}
	plain, _ := source.Parse([]any{"$${{ a }}", json.Number("2.0")}, "/l")
	if literal, ok := plain.Literal(); !ok || cmp.Diff([]any{"${{ a }}", int64(2)}, literal) != "" || plain.Items()[0].Raw() != "$${{ a }}" {
		t.Errorf("%v, %v", literal, ok)
	}
	if diff := cmp.Diff([]any{"$${{ a }}", int64(2)}, plain.Raw()); diff != "" {
		t.Error(diff)
	}
	_, refs := source.Parse("one\n${{ state.x }} two\nthree ${{ [1,\n state.y] }}", "/t")
	if refs != nil {
		t.Fatal(refs)
	}
	parts, _ := source.Parse("one\n${{ state.x }} two\nthree ${{ [1,\n state.y] }}", "/t")
	if found := parts.References(); len(found) != 2 || found[0].Position != "line 2, column 5 of the text" || found[1].Position != "line 4, column 2 of the text" || !parts.Text() {
		t.Errorf("%+v", found)
	}
}
