package contract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract/form"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Bounds of a form: references can make a large tree of a small contract.
const (
	formDepth     = 8
	maxFormFields = 500
	maxFormBytes  = 1 << 20 // of all texts and choices
	maxFormText   = 4 << 10 // of one
	maxFormSchema = 8 << 10
)

// Form describes the schema's values as a form: its properties in the author's order, with the objects and
// lists in them. What a form can't say is given as JSON: values of several types, alternatives, fields by
// pattern, tuples, a schema that holds itself, and what is beyond the bounds.
func (s *Schema) Form() *form.Field {
	b := &formBuilder{left: maxFormFields, room: maxFormBytes, around: map[*node]bool{}}
	f := b.field("", []*node{s.root}, formDepth)
	if f.Kind != form.Object {
		f.Kind, f.Choices, f.Item, f.Schema = form.JSON, nil, nil, b.schema([]*node{s.root.head()})
	}
	f.Required, f.Nullable = true, false // an input is an object
	return f
}

// Place puts findings of Validate, or of form.Read, to the controls that they are about, and returns the first
// control that has some, nil for none.
func Place(c *form.Control, found []fault.Finding) *form.Control {
	for _, f := range found {
		at := c.At(f.Pointer)
		if strings.HasPrefix(f.Message, missing) {
			at = missingIn(at, f.Message)
		}
		at.Findings = append(at.Findings, f)
	}
	for each := range c.All() {
		if len(each.Findings) > 0 {
			return each
		}
	}
	return nil
}

// missingIn returns the control of the field that an object lacks.
func missingIn(object *form.Control, message string) *form.Control {
	for _, part := range object.Parts {
		if message == missingText(quote(part.Key)) {
			return part
		}
	}
	return object
}

type formBuilder struct {
	left   int            // fields that there may still be
	room   int            // bytes of what is shown
	around map[*node]bool // the schemas of the fields around
}

// field describes a value that all the schemas judge.
func (b *formBuilder) field(key string, of []*node, depth int) *form.Field {
	f := &form.Field{Key: key}
	heads := make([]*node, len(of))
	for i, n := range of {
		heads[i] = n.head()
	}
	all := closure(of, (*node).certain)
	f.Nullable = b.shape(f, heads, all, depth)
	b.describe(f, all)
	if f.Kind == form.JSON || f.More {
		f.Schema = b.schema(heads)
	}
	return f
}

// head follows n to the schema that it merely refers to.
func (n *node) head() *node {
	for certain := n.certain(); len(n.form) == 1 && len(certain) == 1; certain = n.certain() {
		n = certain[0]
	}
	return n
}

// certain lists the schemas that hold wherever n does, or where the value isn't null.
func (n *node) certain() []*node {
	list := n.allOf()
	for _, key := range []string{"anyOf", "oneOf"} {
		if others, _ := n.otherThanNull(key); len(others) == 1 {
			list = append(list, others[0])
		}
	}
	return list
}

func (n *node) otherThanNull(key string) (others []*node, null bool) {
	for _, child := range n.many[key] {
		if child.types == kindNull {
			null = true
		} else {
			others = append(others, child)
		}
	}
	return others, null
}

// typesOf returns the types of a value that all the schemas judge, and whether null may stand in its place.
func typesOf(all []*node) (types kinds, null bool) {
	for _, n := range all {
		types = narrowed(types, n.types)
		for _, key := range []string{"anyOf", "oneOf"} {
			_, beside := n.otherThanNull(key)
			null = null || beside
		}
	}
	return types &^ kindNull, null || types&kindNull != 0
}

// shape finds the kind of a field, and what is in it. It reports whether null may stand in its place.
func (b *formBuilder) shape(f *form.Field, heads, all []*node, depth int) (nullable bool) {
	types, null := typesOf(all)
	again := slices.ContainsFunc(heads, func(n *node) bool { return b.around[n] })
	f.Kind = form.JSON
	switch {
	case again:
	case b.choices(f, all):
	case types == kindString:
		textual(f, heads, all)
	case types == kindBoolean:
		f.Kind = form.Boolean
	case types == kindInteger:
		f.Kind = form.Integer
	case types&kindNumber != 0 && types&^kindInteger == kindNumber:
		f.Kind = form.Number
	case types == kindArray || types == 0 && len(itemsOf(all)) > 0:
		b.within(heads, func() { b.list(f, all, depth) })
	case types == kindObject || types == 0 && slices.ContainsFunc(all, (*node).hasProperties):
		b.within(heads, func() { b.object(f, heads, all, depth) })
	}
	return null && f.Kind != form.JSON
}

func (n *node) hasProperties() bool { return len(n.named["properties"]) > 0 }

// within describes what is in a value of the schemas.
func (b *formBuilder) within(heads []*node, describe func()) {
	for _, n := range heads {
		b.around[n] = true
	}
	describe()
	for _, n := range heads {
		delete(b.around, n)
	}
}

// textual describes a text. It names a file wherever a part of the contract says so.
func textual(f *form.Field, heads, all []*node) {
	f.Kind, f.Lines = form.Text, 1
	if slices.ContainsFunc(allHere(heads...), isFile) {
		f.Kind = form.File
		return
	}
	for _, n := range all {
		if _, known := n.form["format"]; known {
			f.Format = cmp.Or(f.Format, n.notes.format)
		}
		if _, checked := n.form["pattern"]; checked && len(n.notes.pattern) <= maxFormText {
			f.Pattern = cmp.Or(f.Pattern, n.notes.pattern)
		}
	}
	switch kind := form.Kind(f.Format); kind {
	case form.Date, form.Time, form.DateTime:
		f.Kind = kind
	}
	if most, err := bounds(all)["maxLength"].Int64(); f.Format == "" && f.Pattern == "" && (err != nil || most > 200) {
		f.Lines = 3
	}
}

func (b *formBuilder) list(f *form.Field, all []*node, depth int) {
	items := itemsOf(all)
	if len(items) == 0 || slices.ContainsFunc(all, (*node).isTuple) || b.left == 0 || depth == 0 {
		return
	}
	b.left--
	if item := b.field("", items, depth-1); item.Kind != form.JSON {
		f.Kind, f.Item = form.List, item
	}
}

// object describes the fields of an object. The outermost one has as many of them as there may be, with the rest
// as JSON.
func (b *formBuilder) object(f *form.Field, heads, all []*node, depth int) {
	names, required := fieldNames(all)
	closed := slices.ContainsFunc(all, (*node).closed)
	if depth == 0 || len(names) == 0 && !closed || len(names) > b.left && depth < formDepth {
		return
	}
	f.Kind = form.Object
	shown := names[:min(len(names), b.left)]
	b.left -= len(shown)
	for _, name := range shown {
		var of []*node
		for _, n := range all {
			of = append(of, n.field(name)...)
		}
		part := b.field(name, of, depth-1)
		part.Required = required[name]
		f.Fields = append(f.Fields, part)
	}
	f.More = len(shown) < len(names) || speaksOfMore(heads, all, names)
}

// fieldNames returns the names of an object's fields, in the author's order, and which ones it must have.
func fieldNames(all []*node) (names []string, required map[string]bool) {
	known := map[string]bool{}
	required = map[string]bool{}
	add := func(name string) {
		if !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	for _, n := range all {
		for _, name := range n.order {
			if child := n.named["properties"][name]; child != nil && !child.never() { // nil: the draft ignores it
				add(name)
			}
		}
	}
	for _, n := range all {
		for _, name := range n.required {
			required[name] = true
			add(name)
		}
	}
	return names, required
}

// speaksOfMore reports whether the contract says something of an object's fields beside those.
func speaksOfMore(heads, all []*node, names []string) bool {
	for _, n := range all {
		if rest := n.one["additionalProperties"]; len(n.patterns) > 0 || rest != nil && !rest.never() {
			return true
		}
	}
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for _, n := range allHere(heads...) {
		for name, child := range n.named["properties"] {
			if !known[name] && !child.never() {
				return true
			}
		}
	}
	return false
}

// choices describes a field that has so many values only, unless they are too many.
func (b *formBuilder) choices(f *form.Field, all []*node) bool {
	for _, n := range all {
		_, enum := n.form["enum"]
		_, constant := n.form["const"]
		if enum || constant {
			return b.choose(f, n.notes.choices, nil)
		}
		for _, key := range []string{"anyOf", "oneOf"} {
			if values, labels := n.constants(key); len(values) > 0 {
				return b.choose(f, values, labels)
			}
		}
	}
	return false
}

// constants returns the values of alternatives that have one each, and their titles.
func (n *node) constants(key string) (values []any, titles []string) {
	others, _ := n.otherThanNull(key)
	for _, child := range others {
		value, constant := child.form["const"]
		if !constant {
			return nil, nil
		}
		values, titles = append(values, value), append(titles, child.notes.title)
	}
	return values, titles
}

func (b *formBuilder) choose(f *form.Field, values []any, labels []string) bool {
	if b.room == 0 {
		return false
	}
	texts := !slices.ContainsFunc(values, func(v any) bool { return kindOf(v) != kindString })
	choices := make([]form.Choice, 0, len(values))
	for i, v := range values {
		value, err := strictjson.Encode(v)
		if b.room -= len(value); b.room < 0 || err != nil {
			b.room = max(b.room, 0)
			return false
		}
		label := string(value)
		if texts {
			label, _ = v.(string)
		}
		if len(labels) > 0 {
			label = cmp.Or(labels[i], label)
		}
		choices = append(choices, form.Choice{Label: cmp.Or(b.text(label), "…"), Value: string(value)})
	}
	f.Kind, f.Choices = form.Enum, choices
	return true
}

// describe tells what the contract says of a field to people, and its bounds.
func (b *formBuilder) describe(f *form.Field, all []*node) {
	var standard, example any
	for _, n := range all {
		f.Label = cmp.Or(f.Label, n.notes.title)
		f.Description = cmp.Or(f.Description, n.notes.description)
		if standard == nil {
			standard = n.notes.fallback
		}
		if example == nil {
			example = n.notes.example
		}
	}
	f.Label, f.Description = cmp.Or(b.text(f.Label), f.Key), b.text(f.Description)
	f.Default, f.Example = b.value(f, standard), b.value(f, example)
	found := bounds(all)
	f.Bounds = form.Bounds{
		Minimum: found["minimum"], Maximum: found["maximum"],
		ExclusiveMinimum: found["exclusiveMinimum"], ExclusiveMaximum: found["exclusiveMaximum"],
		MultipleOf: found["multipleOf"],
		MinLength:  found["minLength"], MaxLength: found["maxLength"],
		MinItems: found["minItems"], MaxItems: found["maxItems"],
	}
}

// value writes a value as it would stand in the field's control.
func (b *formBuilder) value(f *form.Field, v any) string {
	if text, is := v.(string); is && f.Kind != form.Enum && f.Kind != form.JSON {
		return b.text(text)
	}
	if v == nil {
		return ""
	}
	text, err := strictjson.Encode(v)
	if err != nil {
		return ""
	}
	return b.text(string(text))
}

func (b *formBuilder) text(text string) string { return b.clip(text, maxFormText) }

func (b *formBuilder) clip(text string, most int) string {
	if b.room == 0 {
		return ""
	}
	text = fault.Clip(text, min(most, b.room))
	b.room = max(b.room-len(text), 0)
	return text
}

// schema shows the schema of what is given as JSON.
func (b *formBuilder) schema(heads []*node) string {
	var text bytes.Buffer
	if len(heads) == 0 {
		return ""
	}
	if raw := heads[0].text; len(raw) > maxFormSchema || json.Indent(&text, raw, "", "  ") != nil {
		text.Reset()
		text.Write(raw)
	}
	return b.clip(text.String(), maxFormSchema)
}
