package contract

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// compiler walks a document of schemas once: it reports every mistake, takes the short
// type names, resolves references and translates later drafts to draft-07.
type compiler struct {
	document *document
	report   *report
	nodes    map[string]*node  // by pointer
	targets  map[string]string // of references: pointers, by the references' own

	regexpOps int // of all expressions so far
}

func newCompiler(file string, rootless bool) *compiler {
	report := &report{file: file}
	return &compiler{
		document: &document{report: report, rootless: rootless, drafts: map[string]draft{}}, report: report,
		nodes: map[string]*node{}, targets: map[string]string{},
	}
}

// schema returns the node for the value at the pointer, made once.
func (c *compiler) schema(v any, pointer string) *node {
	if n, ok := c.nodes[pointer]; ok {
		return n
	}
	n := newNode(len(c.nodes), pointer)
	if len(c.nodes) == maxSubschemas {
		if !c.report.full {
			c.report.fail("", "split the capsule, or describe less", "the contract has more than %d schemas in it",
				maxSubschemas)
		}
		c.report.full = true
		return n
	}
	c.nodes[pointer] = n
	switch v := v.(type) {
	case bool:
		n.always = &v
	case map[string]any:
		c.object(n, v)
	default:
		c.report.fail(pointer, `write a schema there, such as {"type": "string"}`,
			"expected a schema (an object), got %s", kindOf(v))
	}
	return n
}

func (c *compiler) object(n *node, m map[string]any) {
	n.notes = noted(m)
	ref, refers := m["$ref"]
	if refers && c.document.draftAt(n.pointer) < draft2019 {
		c.beside(n, m)
		c.refer(n, ref)
		return
	}
	for _, key := range sorted(m) {
		if key != "$ref" {
			c.keyword(n, key, m[key])
		}
	}
	form := translator{n: n, draft: c.document.draftAt(n.pointer), report: c.report}
	form.translate()
	if refers {
		c.refer(n, ref)
	}
	if all := append(slots(n.many["allOf"]), n.also...); len(all) > 0 { // has to hold beside all else
		n.form["allOf"] = all
	}
	form.pairs()
	if n.filePath && (n.types&kindString == 0 || n.types&^(kindString|kindNull) != 0) {
		c.report.fail(n.pointer+"/format", `write "type": "string" beside it`,
			`the format file_path is for strings only`)
	}
}

func (c *compiler) keyword(n *node, key string, v any) {
	at := n.pointer + strictjson.Pointer(key)
	if c.document.tooNew(key, at) || annotations[key] {
		return
	}
	if read, ok := keywords[key]; ok {
		read(keyword{c, n, key, v, at})
		return
	}
	if !strings.HasPrefix(key, "x-") {
		c.report.warn(at, unknownHint(key, v), "%s is not a keyword of JSON Schema and is ignored", quote(key))
	}
}

// unknownHint guesses what was meant.
func unknownHint(key string, v any) string {
	if near := nearest(key, sorted(keywords)); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if key == "nullable" {
		return `write "type": ["string", "null"]`
	}
	if kindOf(v)&(kindObject|kindString) != 0 {
		return `if it is a field, it belongs under "properties"`
	}
	return "remove it"
}

// beside looks at what stands beside a reference where the draft ignores it.
func (c *compiler) beside(n *node, m map[string]any) {
	for _, key := range sorted(m) {
		if key == "definitions" || key == "$defs" || key == "$schema" || key == "$id" {
			c.keyword(n, key, m[key])
		} else if key != "$ref" && !annotations[key] {
			c.report.warn(n.pointer+strictjson.Pointer(key), `write {"allOf": [{"$ref": …}], …} to have both`,
				"%s stands beside $ref, where draft-07 ignores it", quote(key))
		}
	}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// top checks what stands beside input and output.
func (c *compiler) top(m map[string]any) {
	outer := newNode(0, "")
	for _, key := range sorted(m) {
		switch key {
		case "$schema", "$id", "$defs", "definitions":
			c.keyword(outer, key, m[key])
		}
		if !topKeys[key] {
			hint := `remove it; only "input", "output", "definitions", "$schema", "$id", "title" and "description" ` +
				`stand at the top`
			if _, ok := keywords[key]; ok {
				hint = `a contract has two schemas: put this into {"input": {...}, "output": {...}}`
			}
			if near := nearest(key, sorted(topKeys)); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			c.report.fail(strictjson.Pointer(key), hint, "the key %s is not known at the top of a contract", quote(key))
		}
	}
}

// sideOf compiles the input or the output, which judges JSON objects only.
func (c *compiler) sideOf(top map[string]any, name string) *Schema {
	v, ok := top[name]
	if !ok {
		c.report.fail("", `add "`+name+`": {"type": "object", "properties": {...}}`, "the contract has no %q", name)
		return nil
	}
	if _, ok := v.(map[string]any); !ok {
		c.report.fail("/"+name, `write {"type": "object", "properties": {...}}`,
			"expected a schema (an object), got %s", kindOf(v))
		return nil
	}
	root := c.schema(v, "/"+name)
	if !root.types.allows(kindObject) {
		c.report.fail("/"+name+"/type", `write "type": "object" and put the value into a field`,
			"the %s of a capsule is always an object, so that this could never be satisfied", name)
	}
	return &Schema{root: root}
}

// written notes what the author wrote of each schema in a text, and the order of its fields.
func (c *compiler) written(text, pointer []byte) {
	n := c.nodes[string(pointer)]
	if n != nil {
		n.text = text
	}
	for name, value := range strictjson.Members(text) {
		if n != nil && name == "properties" {
			for field := range strictjson.Members(value) {
				n.order = append(n.order, field)
			}
		}
		if n == nil || !data[name] {
			c.written(value, append(append(pointer, '/'), strictjson.Escape(name)...))
		}
	}
	i := 0
	for value := range strictjson.Elements(text) {
		c.written(value, strconv.AppendInt(append(pointer, '/'), int64(i), 10))
		i++
	}
}

// finish compiles the side for validation, if nothing stands against it.
func (c *compiler) finish(s *Schema, pointer string) bool {
	if len(fault.Errors(c.report.findings)) > 0 {
		return false
	}
	compiled, err := engineFor(documentOf(s.root))
	if err != nil {
		c.report.fail(pointer, "", "the schema can't be used: %s", show(err.Error()))
		return false
	}
	if s.plain, err = c.plain(pointer); err != nil {
		c.report.fail(pointer, "", "the schema can't be written plainly: %s", show(err.Error()))
		return false
	}
	s.compiled = compiled
	return true
}

// refer makes n what its reference says; beside other keywords both hold.
func (c *compiler) refer(n *node, ref any) {
	at := n.pointer + "/$ref"
	text, ok := wants[string](keyword{c: c, n: n, v: ref, at: at}, "a string", `"#/definitions/name"`)
	if !ok {
		return
	}
	pointer, value, ok := c.document.resolve(text, at)
	if !ok {
		return
	}
	c.targets[at] = pointer
	target := c.schema(value, pointer)
	if len(n.form) == 0 {
		n.one["$ref"], n.form["$ref"] = target, "#/$defs/"+target.name()
		return
	}
	n.many["allOf"] = append(n.many["allOf"], target)
}

// measure finds references that go round in place without ever reaching a field or
// an item, and contracts in which one value would be judged far too often: a short
// chain of anyOf over references doubles at each link.
func (c *compiler) measure() {
	nodes := slices.SortedFunc(maps.Values(c.nodes), func(a, b *node) int { return a.id - b.id })
	m := &measurer{c: c, state: make([]measureState, len(nodes))}
	for _, n := range nodes {
		m.visit(n)
	}
}

type measureState uint8

const (
	untouched measureState = iota
	open
	done
)

type measurer struct {
	c        *compiler
	state    []measureState
	reported bool // the first one explains all that build on it
}

func (m *measurer) visit(n *node) {
	if m.state[n.id] == done {
		return
	}
	m.state[n.id] = open
	n.expansion, n.height = 1, 1
	for _, child := range n.inPlace() {
		if m.state[child.id] == open {
			m.report(n, "let the recursion go through a field or an item",
				"the schema refers back to itself in a circle that no value could ever leave")
			continue
		}
		m.visit(child)
		n.expansion = min(n.expansion+child.expansion, maxExpansion+1)
		n.height = max(n.height, child.height+1)
	}
	m.state[n.id] = done
	if n.expansion > maxExpansion || n.height > maxInPlace {
		m.report(n, "use fewer alternatives (anyOf, oneOf, allOf, $ref) within one another",
			"one value would be checked against too many alternatives: the limit is %d in all, and %d within "+
				"one another", maxExpansion, maxInPlace)
	}
}

func (m *measurer) report(n *node, hint, format string, args ...any) {
	if !m.reported {
		m.c.report.fail(n.pointer, hint, format, args...)
	}
	m.reported = true
}
