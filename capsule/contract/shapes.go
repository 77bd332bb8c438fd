package contract

import "slices"

// How deep Shape looks into a schema, and how many parts it has at most: references can make a
// large tree of a small contract.
const (
	shapeDepth = 8
	maxShapes  = 2000
)

// Shape is what all values of a schema have in common, as far as that is sure: what stands in
// alternatives and conditions isn't. The zero value is that of any value.
type Shape struct {
	Types    []string // JSON Schema's words; nil: any
	File     bool     // a text that names a file
	Choices  []any    // the only values; nil: any. Numbers are json.Number
	Fields   map[string]*Shape
	Required []string // sorted
	Closed   bool     // no fields but Fields
	Item     *Shape   // of a list, where each has the same; nil: any
}

// Shape returns what is sure of the schema's values.
func (s *Schema) Shape() *Shape {
	r := &shaper{left: maxShapes}
	return r.shape([]*node{s.root}, shapeDepth)
}

type shaper struct{ left int }

func (r *shaper) shape(nodes []*node, depth int) *Shape {
	shape := &Shape{}
	if r.left--; depth == 0 || r.left < 0 {
		return shape
	}
	all := closure(nodes, (*node).allOf)
	var types kinds
	for _, n := range all {
		types = narrowed(types, n.types)
		shape.File = shape.File || n.filePath
		if shape.Choices == nil {
			shape.Choices = n.notes.choices
		}
	}
	if !shape.File && slices.ContainsFunc(allHere(nodes...), isFile) {
		return &Shape{} // a file in one case, and something else in another
	}
	if types != 0 {
		shape.Types = types.names()
	}
	r.readFields(shape, all, depth)
	if items := itemsOf(all); len(items) > 0 && !slices.ContainsFunc(all, (*node).isTuple) {
		shape.Item = r.shape(items, depth-1)
	}
	return shape
}

// narrowed are the types that both sets allow; the empty set allows all.
func narrowed(a, b kinds) kinds {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	both := a & b
	if a&kindNumber != 0 && b&kindInteger != 0 || b&kindNumber != 0 && a&kindInteger != 0 {
		both |= kindInteger
	}
	return both
}

func (n *node) isTuple() bool { return n.many["items"] != nil }

func (r *shaper) readFields(s *Shape, all []*node, depth int) {
	properties := map[string][]*node{}
	for _, n := range all {
		for name, child := range n.named["properties"] {
			properties[name] = append(properties[name], child)
		}
		s.Required = append(s.Required, n.required...)
		s.Closed = s.Closed || n.closed()
	}
	slices.Sort(s.Required)
	s.Required = slices.Compact(s.Required)
	if len(properties) == 0 {
		return
	}
	s.Fields = make(map[string]*Shape, len(properties))
	for _, name := range sorted(properties) {
		s.Fields[name] = r.shape(properties[name], depth-1)
	}
}

// closed reports whether an object can have no fields but those that n names.
func (n *node) closed() bool {
	rest := n.one["additionalProperties"]
	return rest != nil && rest.always != nil && !*rest.always && len(n.patterns) == 0
}
