package expr

import "testing"

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
