package contract

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
)

const (
	// fieldDepth is how deep Fields looks into objects.
	fieldDepth = 4
	// maxFields bounds what Fields returns.
	maxFields = 500
)

// Field is a field of a payload, as far as its contract tells of it.
type Field struct {
	Name        string `json:"name"` // dotted below the top
	Type        string `json:"type"` // "file", "files", or JSON Schema's words, such as "integer or null"
	Required    bool   `json:"required"`
	Description string `json:"description,omitempty"`
	Default     any    `json:"default,omitempty"` // told to people: AOD doesn't fill it in
	Choices     []any  `json:"choices,omitempty"` // the only values
}

// The types of fields that name files.
const (
	FileField  = "file"
	FilesField = "files"
)

// IsFile reports whether the field names a file, or several.
func (f Field) IsFile() bool { return f.Type == FileField || f.Type == FilesField }

// notes are what a schema says to people.
type notes struct {
	title, description string
	pattern            string // as it was written
	format             string
	fallback           any // its default
	example            any // the first one
	choices            []any
}

// noted reads the notes of a schema.
func noted(m map[string]any) (n notes) {
	n.title, _ = m["title"].(string)
	n.description, _ = m["description"].(string)
	n.pattern, _ = m["pattern"].(string)
	n.format, _ = m["format"].(string)
	n.fallback = m["default"]
	if examples, _ := m["examples"].([]any); len(examples) > 0 {
		n.example = examples[0]
	}
	n.choices, _ = m["enum"].([]any)
	if value, there := m["const"]; there {
		n.choices = []any{value}
	}
	return n
}

// Fields lists the properties of the schema and of the objects in it, the required ones first,
// each before its parts.
func (s *Schema) Fields() []Field { return appendFields([]Field{}, "", []*node{s.root}, fieldDepth) }

func appendFields(list []Field, prefix string, of []*node, depth int) []Field {
	children, required := properties(of)
	names := slices.SortedFunc(maps.Keys(children), func(x, y string) int {
		switch {
		case required[x] && !required[y]:
			return -1
		case required[y] && !required[x]:
			return 1
		}
		return cmp.Compare(x, y)
	})
	for _, name := range names {
		if len(list) == maxFields {
			break
		}
		list = append(list, fieldOf(prefix+name, required[name], children[name]))
		if depth > 1 {
			list = appendFields(list, prefix+name+".", children[name], depth-1)
		}
	}
	return list
}

// properties returns the schemas of each field of an object, and which fields it must have.
func properties(of []*node) (children map[string][]*node, required map[string]bool) {
	children, required = map[string][]*node{}, map[string]bool{}
	for _, n := range allHere(of...) {
		for name, child := range n.named["properties"] {
			children[name] = append(children[name], child)
		}
	}
	for _, n := range closure(of, (*node).allOf) {
		for _, name := range n.required {
			required[name] = true
		}
	}
	return children, required
}

// allOf lists the schemas that hold wherever n does.
func (n *node) allOf() []*node {
	list := slices.Clone(n.many["allOf"])
	if ref := n.one["$ref"]; ref != nil {
		list = append(list, ref)
	}
	return list
}

func fieldOf(name string, required bool, schemas []*node) Field {
	f := Field{Name: name, Type: typeText(schemas), Required: required}
	for _, n := range allHere(schemas...) {
		f.Description = cmp.Or(f.Description, n.notes.description)
		if f.Default == nil {
			f.Default = n.notes.fallback
		}
		if f.Choices == nil {
			f.Choices = n.notes.choices
		}
	}
	return f
}

// typeText says what may stand in a field.
func typeText(schemas []*node) string {
	all := allHere(schemas...)
	var types kinds
	for _, n := range all {
		if n.filePath {
			return FileField
		}
		types |= n.types
	}
	items := itemsOf(all)
	if slices.ContainsFunc(allHere(items...), func(n *node) bool { return n.filePath }) {
		return FilesField
	}
	switch {
	case types == 0:
		return "any"
	case types == kindArray && len(items) > 0:
		return "array of " + typeText(items)
	}
	return types.String()
}

// itemsOf returns the schemas of an array's elements.
func itemsOf(arrays []*node) []*node {
	var items []*node
	for _, n := range arrays {
		if item := n.item(0); item != nil {
			items = append(items, item)
		}
	}
	return items
}

// IsList reports whether files for the field at a dotted path make a list of names. The
// contract says so; where it says nothing a field takes a list, but for `file`.
func (s *Schema) IsList(path string) bool {
	value, err := s.ParseField(path, "[]")
	if err != nil {
		return path == "files"
	}
	if _, list := value.([]any); !list {
		return false
	}
	if path != "file" {
		return true
	}
	_, err = s.ParseField(path, "{}") // what says nothing takes an object as well
	return err != nil
}

// Example returns a payload with the required fields, made of what the schema says of them:
// defaults, examples, choices, types and bounds. Files are left out. ok is false where that
// isn't enough to keep the contract.
func (s *Schema) Example() (example Payload, ok bool) {
	e := exampler{left: maxFields}
	object, _ := e.value([]*node{s.root}, fieldDepth).(map[string]any)
	example, err := NewPayload(object)
	if err != nil {
		return Payload{}, false
	}
	return example, len(s.Validate(example)) == 0
}

// ParseField reads the text of one field, as a person types it, into the value that
// the contract asks for. The path is dotted for nested objects. Where the contract
// allows a string the text is taken as it stands; where it asks for something else
// the text is read as JSON and has to be of that type; where it says nothing the
// text is JSON if it can be read as such, else a string. Numbers are json.Number.
// The error is an Input fault and doesn't show the text.
func (s *Schema) ParseField(path, text string) (any, error) {
	keys, err := splitPath(path)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(text) || !utf8.ValidString(path) {
		return nil, fault.New(fault.Input, "field %s: the text is not valid UTF-8", quote(path))
	}
	nodes := []*node{s.root}
	for i, key := range keys {
		if nodes, err = descend(nodes, key, strings.Join(keys[:i+1], ".")); err != nil {
			return nil, err
		}
	}
	return typed(nodes, path, text)
}

// FilePlaces lists where in the contract's document a string is declared to name a file,
// sorted: as pointers, wherever that is and whatever refers to it.
func (s *Schema) FilePlaces() []string {
	var places []string
	for _, n := range closure([]*node{s.root}, (*node).parts) {
		if n.filePath {
			places = append(places, n.pointer)
		}
	}
	slices.Sort(places)
	return places
}

// FileFields lists the top-level properties that are file references, sorted.
func (s *Schema) FileFields() []string { return s.fields(isFile) }

// TakingFiles lists the top-level properties that files can be given for, sorted: file
// references and lists of them.
func (s *Schema) TakingFiles() []string {
	return s.fields(func(n *node) bool {
		item := n.one["items"]
		return isFile(n) || item != nil && slices.ContainsFunc(allHere(item), isFile)
	})
}

func isFile(n *node) bool { return n.filePath }

// fields lists the top-level properties that some applicable part of the contract says that of.
func (s *Schema) fields(says func(*node) bool) []string {
	fields := map[string]bool{}
	for _, n := range allHere(s.root) {
		for name, child := range n.named["properties"] {
			fields[name] = fields[name] || slices.ContainsFunc(allHere(child), says)
		}
	}
	maps.DeleteFunc(fields, func(_ string, said bool) bool { return !said })
	return sorted(fields)
}

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
	return rest != nil && rest.never() && len(n.patterns) == 0
}
