package expr

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTypes(t *testing.T) {
	vars := map[string]*Type{"input": {Kinds: Object, Closed: true, Fields: map[string]*Type{
		"n": {Kinds: Number}, "t": {Kinds: Text | Null}, "f": {Kinds: File}, "any": nil, "l": {Kinds: List, Item: &Type{Kinds: Object, Fields: map[string]*Type{"t": {Kinds: Text}}}},
	}}}
	for text, want := range map[string]Kind{
		"a": Text, "a${{ input.n }}": Text, "${{ input.n }}": Number, "${{ input.t }}": Text | Null, "${{ input.t ?? 'x' }}": Text, "${{ input.f }}": File,
		"${{ input.f.name }}": Text, "${{ input.any }}": 0, "${{ input.nope }}": 0, "${{ input.any.x }}": 0, "${{ other }}": 0,
		"${{ input.n > 1 }}": Bool, "${{ input.n > 1 ? 'a' : 2 }}": Text | Number, "${{ not true }}": Bool, "${{ -input.n }}": Number, "${{ 'a' + input.any }}": Text,
		"${{ input.any + input.any }}": Text | Number, "${{ map(input.l, .t)[0] }}": Text, "${{ filter(input.l, true)[0].t }}": Text, "${{ first(input.l) }}": Object | Null,
		"${{ let x = input.n; x }}": Number, "${{ [input.n][0] }}": Number, "${{ {a: input.f}.a }}": File, "${{ {(input.any): 1}.b }}": 0, "${{ 1..2 }}": List, "${{ input.t?.x }}": 0,
		"${{ chunk(input.l, 2)[0][0].t }}": Text, "${{ len(input.l) }}": Number, "${{ fromJSON('1') }}": 0, "${{ if true { 1 } else { nil } }}": Number | Null,
		"${{ map(input.l, #index)[0] }}": Number, "${{ reduce(input.l, #acc, 0) }}": 0,
	} {
		template, findings := Source{}.Parse(text, "/x")
		got := template.Type(vars)
		kinds := Kind(0)
		if got != nil {
			kinds = got.Kinds
		}
		if kinds != want || findings != nil {
			t.Errorf("%s is %s, want %s %v", text, kinds, want, findings)
		}
	}
}

// kindOfValue is the kind that a result has.
func kindOfValue(value any) Kind {
	switch value.(type) {
	case nil:
		return Null
	case bool:
		return Bool
	case string:
		return Text
	case int64, float64:
		return Number
	case []any:
		return List
	case map[string]any:
		return Object
	}
	return File
}

// holds reports whether a value is of a type, with all that is said of its parts.
func holds(t *Type, value any) bool {
	if t.Any() {
		return true
	}
	if t.Kinds&kindOfValue(value) == 0 {
		return false
	}
	list, _ := value.([]any)
	for _, item := range list {
		if !holds(t.Item, item) {
			return false
		}
	}
	object, _ := value.(map[string]any)
	for name, member := range object {
		field, known := t.Fields[name]
		if !known && t.Closed || !holds(field, member) {
			return false
		}
	}
	return true
}

func TestATypeHoldsWhatAnExpressionGives(t *testing.T) {
	values := Vars{"n": int64(3), "s": "text", "none": nil, "yes": true, "nums": []any{int64(1), 2.5}, "words": []any{"b", "a"}, "empty": []any{}, "o": map[string]any{"a": int64(1), "b": nil}, "rows": []any{map[string]any{"k": "x", "v": int64(1)}, map[string]any{"k": "y", "v": nil}}}
	row := &Type{Kinds: Object, Closed: true, Fields: map[string]*Type{"k": {Kinds: Text}, "v": {Kinds: Number | Null}}}
	types := map[string]*Type{
		"n": {Kinds: Number}, "s": {Kinds: Text}, "none": {Kinds: Null}, "yes": {Kinds: Bool}, "nums": {Kinds: List, Item: &Type{Kinds: Number}}, "words": {Kinds: List, Item: &Type{Kinds: Text}},
		"empty": {Kinds: List, Item: &Type{Kinds: Number}}, "o": {Kinds: Object, Closed: true, Fields: map[string]*Type{"a": {Kinds: Number}, "b": {Kinds: Null}}}, "rows": {Kinds: List, Item: row},
	}
	for _, text := range []string{
		"n", "none ?? n", "n ?? none", "none?.x", "o?.a", "o.b ?? s", "yes ? n : s", "not yes", "!yes", "-n", "n - 1", "n * 2", "n / 2", "n % 2", "n ** 2", "n + 1", "s + s", "n > 1", "s == s", "yes and yes", "yes || yes",
		"n in nums", "s matches 't'", "s contains 't'", "s startsWith 't'", "1..n", "nums[0]", "nums[0:1]", "s[0:1]", "rows[1].v", "rows[0]", "o.a", `o["a"]`, "[n, s, none]", "[]", "{a: n, b: [s]}", "{(s): n}", "{}", "let x = n; [x, s]", "n; s",
		"all(nums, # > 0)", "any(nums, # > 1)", "none(nums, # > 9)", "one(nums, # > 2)", "count(nums, # > 1)", "filter(rows, .v != nil)", "map(rows, .k)", "map(rows, .v)", "map(rows, #index)", "map(nums, [#, #index])", "find(rows, .v == 1)", "find(rows, .v == 2)",
		"findLast(words, # == 'a')", "findLastIndex(nums, # == 9)", "findIndex(nums, # == 1)", "findIndex(nums, # == 9)", "groupBy(rows, .k)", "sortBy(rows, .k)", "reduce(nums, #acc + #, 0)", "sum(nums)", "sum(rows, .v ?? 0)",
		"len(s)", "type(n)", "abs(n)", "ceil(n)", "floor(2.5)", "round(2.5)", "int('1')", "float('1')", "trimPrefix(s, 't')", "trimSuffix(s, 't')", "upper(s)", "lower(s)", "indexOf(s, 'x')", "lastIndexOf(s, 'q')", "hasPrefix(s, 't')", "hasSuffix(s, 't')",
		"toBase64(s)", "fromBase64(toBase64(s))", "first(nums)", "first(empty)", "last(empty)", "last(words)", "get(o, 'a')", "get(o, 'q')", "take(nums, 1)", "reverse(words)", "concat(nums, words)", "sort(words)", "chunk(rows, 1)", "uniq(nums)", "flatten([nums, [words]])",
		"keys(o)", "values(o)", "toPairs(o)", "fromPairs([['a', n]])", "split(s, 'x')", "join(words)", "replace(s, 't', 'u')", "repeat(s, 2)", "trim(s)", "string(n)", "toJSON(o)", "fromJSON('[1]')", "min(nums)", "min(empty)", "max(1, 2)", "mean(empty)", "median(nums)",
		"first(rows)?.k", "first(empty) ?? s", "chunk(nums, 1)[0][0]", "map(filter(rows, .v != nil), .v)[0]", "if yes { n } else { s }", "(yes ? [n] : [s])[0]", "(yes ? {a: n} : {b: s})", "(yes ? o : s)", "words[0] + s", "none == nil ? 'x' : n",
	} {
		template, findings := Source{}.Parse("${{ "+text+" }}", "/x")
		if findings != nil {
			t.Errorf("%s: %v", text, findings)
			continue
		}
		value, err := template.Eval(t.Context(), values)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if inferred := template.Type(types); !holds(inferred, value) {
			t.Errorf("%s gives %#v, and was said to give %+v", text, value, inferred)
		}
	}
}

func TestTypesAreNamed(t *testing.T) {
	for kinds, want := range map[Kind]string{Number: "a number", Text | Null: "nothing or a text", Bool | List | Object | File: "true or false or a list or an object or a file", 0: ""} {
		if got := kinds.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestATypeOfTwo(t *testing.T) {
	list := func(item *Type) *Type { return &Type{Kinds: List, Item: item} }
	object := func(closed bool, fields map[string]*Type) *Type {
		return &Type{Kinds: Object, Closed: closed, Fields: fields}
	}
	number, text := &Type{Kinds: Number}, &Type{Kinds: Text}
	for name, c := range map[string]struct{ a, b, want *Type }{
		"the same":                    {number, number, number},
		"a number or a text":          {number, text, &Type{Kinds: Number | Text}},
		"with anything":               {number, nil, nil},
		"lists of both":               {list(number), list(text), list(&Type{Kinds: Number | Text})},
		"lists, one of anything":      {list(number), list(nil), list(nil)},
		"a list or a text":            {list(number), text, &Type{Kinds: List | Text, Item: number}},
		"a text or a list":            {text, list(number), &Type{Kinds: List | Text, Item: number}},
		"an object or a text":         {object(true, map[string]*Type{"a": number}), text, &Type{Kinds: Object | Text, Closed: true, Fields: map[string]*Type{"a": number}}},
		"a text or an object":         {text, object(true, map[string]*Type{"a": number}), &Type{Kinds: Object | Text, Closed: true, Fields: map[string]*Type{"a": number}}},
		"objects, one of them open":   {object(true, map[string]*Type{"a": number}), object(false, map[string]*Type{"a": text}), object(false, map[string]*Type{"a": {Kinds: Number | Text}})},
		"objects with other fields":   {object(true, map[string]*Type{"a": number}), object(true, map[string]*Type{"b": text}), object(true, map[string]*Type{"a": number, "b": text})},
		"objects, one without fields": {object(true, nil), object(true, map[string]*Type{"b": text}), object(true, map[string]*Type{"b": text})},
	} {
		if diff := cmp.Diff(c.want, Join(c.a, c.b)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	deepA, deepB := number, text
	for range 20 {
		deepA, deepB = list(deepA), list(deepB)
	}
	depth := 0
	for joined := Join(deepA, deepB); joined != nil; joined = joined.Item {
		depth++
	}
	if depth != 8 {
		t.Errorf("what is known of two goes %d deep", depth)
	}
}
