package flow

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow/expr"
)

// types are those of the variables that expressions see.
type types map[string]*expr.Type

func (t types) with(name string, of *expr.Type) types {
	more := maps.Clone(t)
	more[name] = of
	return more
}

// env is what is known of a state: the keys that some way here has set.
type env struct {
	keys  map[string]*expr.Type
	open  bool // there may be others
	loose bool // others are nothing to wonder about
}

func (e env) typ() *expr.Type {
	return &expr.Type{Kinds: expr.Object, Fields: e.keys, Closed: !e.open}
}

// with is the state after more was written into it.
func (e env) with(more env) env {
	keys := maps.Clone(e.keys)
	if keys == nil {
		keys = make(map[string]*expr.Type, len(more.keys))
	}
	maps.Copy(keys, more.keys)
	return env{keys: keys, open: e.open || more.open, loose: e.loose || more.loose}
}

// joined is the state where two ways meet, and whether that is more than e.
func (e env) joined(other env) (env, bool) {
	result := e.with(env{open: other.open, loose: other.loose})
	changed := result.open != e.open || result.loose != e.loose
	for key, t := range other.keys {
		mine, ok := e.keys[key]
		if ok {
			t = expr.Join(mine, t)
		}
		if !ok || !alike(mine, t, 8) {
			result.keys[key], changed = t, true
		}
	}
	return result, changed
}

func alike(a, b *expr.Type, depth int) bool {
	if a == b || a.Any() && b.Any() || depth == 0 {
		return true
	}
	if a.Any() || b.Any() || a.Kinds != b.Kinds || a.Closed != b.Closed || len(a.Fields) != len(b.Fields) ||
		!alike(a.Item, b.Item, depth-1) {
		return false
	}
	for name, field := range a.Fields {
		other, ok := b.Fields[name]
		if !ok || !alike(field, other, depth-1) {
			return false
		}
	}
	return true
}

// kindOfType are JSON Schema's words.
var kindOfType = map[string]expr.Kind{
	"null": expr.Null, "boolean": expr.Bool, "integer": expr.Number, "number": expr.Number, "string": expr.Text,
	"array": expr.List, "object": expr.Object,
}

func kindsOf(s *contract.Shape) (kinds expr.Kind) {
	for _, word := range s.Types {
		kinds |= kindOfType[word]
	}
	if s.File {
		kinds = kinds&^expr.Text | expr.File
	}
	return kinds
}

// typeOf is the type of values that keep a contract.
func typeOf(s *contract.Shape) *expr.Type {
	if s == nil {
		return nil
	}
	t := &expr.Type{Kinds: kindsOf(s), Closed: s.Closed, Item: typeOf(s.Item)}
	if s.Fields != nil || s.Closed {
		t.Fields = make(map[string]*expr.Type, len(s.Fields))
	}
	for name, field := range s.Fields {
		t.Fields[name] = typeOf(field)
	}
	if t.Kinds == 0 && t.Fields != nil {
		t.Kinds = expr.Object // of a payload, or of what is used as one
	}
	if t.Kinds == 0 {
		return nil
	}
	return t
}

// declared are the types of `state`.
func declared(state map[string]any) map[string]*expr.Type {
	keys := make(map[string]*expr.Type, len(state))
	for key, schema := range state {
		keys[key] = typeOf(shapeOf(schema))
	}
	return keys
}

// shapeOf reads a schema of the file; nil where there is none.
func shapeOf(schema any) *contract.Shape {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil
	}
	compiled, _ := contract.Compile(raw)
	if compiled == nil {
		return nil
	}
	return compiled.Shape()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
