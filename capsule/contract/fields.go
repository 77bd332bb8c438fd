package contract

import (
	"cmp"
	"maps"
	"slices"
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
	description string
	fallback    any // its default
	example     any // the first one
	choices     []any
}

// noted reads the notes of a schema.
func noted(m map[string]any) (n notes) {
	n.description, _ = m["description"].(string)
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
