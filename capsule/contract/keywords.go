package contract

import (
	"strconv"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// keyword is one keyword of a schema: its readers put it into the schema's node.
type keyword struct {
	c   *compiler
	n   *node
	key string
	v   any
	at  string // the pointer of the value
}

func (k keyword) fail(hint, format string, args ...any) { k.c.report.fail(k.at, hint, format, args...) }

func (k keyword) warn(hint, format string, args ...any) { k.c.report.warn(k.at, hint, format, args...) }

// part is what stands in the value under a name, or at a number.
func (k keyword) part(name string, v any) keyword {
	k.at, k.v = k.at+"/"+strictjson.Escape(name), v
	return k
}

func (k keyword) item(i int, v any) keyword { return k.part(strconv.Itoa(i), v) }

// schema is the node of a value that has to be a schema.
func (k keyword) schema() *node { return k.c.schema(k.v, k.at) }

// keywords has a reader for each keyword that says something about values.
var keywords map[string]func(keyword)

// annotations say something to people and nothing about values.
var annotations = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "$comment": true, "readOnly": true,
	"writeOnly": true, "deprecated": true, "contentMediaType": true, "contentEncoding": true, "contentSchema": true,
	"discriminator": true, // OpenAPI's, beside a oneOf that says the same
}

func init() { // a variable's initialiser may not refer to itself, and unknownHint does
	keywords = map[string]func(keyword){
		"$schema": keyword.draft, "type": keyword.types, "format": keyword.format,
		"enum": keyword.enum, "const": keyword.constant, "pattern": keyword.pattern,
		"required": keyword.required, "uniqueItems": keyword.unique, "multipleOf": keyword.multipleOf,
		"properties": keyword.properties, "patternProperties": keyword.patternProperties,
		"items": keyword.items,
	}
	group := func(read func(keyword), keys ...string) {
		for _, key := range keys {
			keywords[key] = read
		}
	}
	group(keyword.identifier, "$id", "id")
	group(keyword.definitions, "definitions", "$defs")
	group(keyword.number, "minimum", "maximum")
	group(keyword.exclusive, "exclusiveMinimum", "exclusiveMaximum")
	group(keyword.count, "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
		"minContains", "maxContains")
	group(keyword.single, "additionalProperties", "additionalItems", "propertyNames", "contains", "not", "if",
		"then", "else")
	group(keyword.list, "allOf", "anyOf", "oneOf", "prefixItems")
	group(keyword.dependencies, "dependencies", "dependentRequired", "dependentSchemas")
}

// wants asserts that v is of the kind; if not it reports so.
func wants[T any](k keyword, want, example string) (T, bool) {
	t, ok := k.v.(T)
	if !ok {
		k.fail("for example "+example, "expected %s, got %s", want, kindOf(k.v))
	}
	return t, ok
}

func (k keyword) draft() {
	text, ok := wants[string](k, "a string", `"http://json-schema.org/draft-07/schema#"`)
	if _, known := draftNamed(text); ok && !known {
		k.fail(`write "http://json-schema.org/draft-07/schema#", or leave $schema out`,
			"contracts are JSON Schema draft-04 to 2020-12; this names another one")
	}
}

// identifier allows an id at the top, where it means nothing to us. Further down it
// would change what "#/…" refers to.
func (k keyword) identifier() {
	if _, ok := wants[string](k, "a string", `"https://example.com/name"`); ok && k.n.pointer != "" {
		k.fail(`remove it; "definitions" and "$ref": "#/definitions/name" do the same`,
			"an id within a contract would change what its references mean")
	}
}

func (k keyword) definitions() { k.schemas() }

// schemas reads an object of schemas.
func (k keyword) schemas() map[string]*node {
	m, ok := wants[map[string]any](k, "an object of schemas", `{"name": {"type": "string"}}`)
	if !ok {
		return nil
	}
	nodes := make(map[string]*node, len(m))
	for _, key := range sorted(m) {
		nodes[key] = k.part(key, m[key]).schema()
	}
	return nodes
}

func (k keyword) properties() {
	if nodes := k.schemas(); len(nodes) > 0 {
		k.n.named[k.key], k.n.form[k.key] = nodes, slotsByName(nodes)
	}
}

func (k keyword) single() {
	child := k.schema()
	k.n.one[k.key], k.n.form[k.key] = child, child.slot()
}

// list reads a list of schemas, which may be empty where it says something of items.
func (k keyword) list() {
	list, ok := wants[[]any](k, "a list of schemas", `[{"type": "string"}]`)
	if !ok {
		return
	}
	if len(list) == 0 && k.key != "items" && k.key != "prefixItems" {
		k.fail("put a schema in, or remove the keyword", "the list is empty")
	}
	nodes := make([]*node, len(list))
	for i, e := range list {
		nodes[i] = k.item(i, e).schema()
	}
	k.n.many[k.key] = nodes
	if len(nodes) > 0 {
		k.n.form[k.key] = slots(nodes)
	}
}

func (k keyword) items() {
	if _, ok := k.v.([]any); ok {
		k.list()
		return
	}
	k.single()
}

func (k keyword) names() []string {
	list, ok := wants[[]any](k, "a list of field names", `["name"]`)
	if !ok {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for i, e := range list {
		item := k.item(i, e)
		name, ok := wants[string](item, "the name of a field", `"name"`)
		if ok && seen[name] {
			item.fail("remove it", "the name stands in the list twice")
		}
		if ok && !seen[name] {
			names = append(names, name)
		}
		seen[name] = true
	}
	return names
}

func (k keyword) required() {
	if _, ok := k.v.(bool); ok {
		k.fail(`list the names in the object's schema, beside "properties": "required": ["name"]`,
			"expected a list of field names, got boolean")
		return
	}
	if k.n.required = k.names(); len(k.n.required) > 0 {
		k.n.form[k.key] = anys(k.n.required)
	}
}

// dependencies reads what a field that is there asks for: names, a schema, or either of
// them. The form is written by dependent.
func (k keyword) dependencies() {
	m, ok := wants[map[string]any](k, "an object", `{"card": ["address"]}`)
	if !ok {
		return
	}
	for _, field := range sorted(m) {
		part := k.part(field, m[field])
		if _, list := m[field].([]any); list && k.key == "dependencies" || k.key == "dependentRequired" {
			k.n.depend(field, part.names())
			continue
		}
		if _, taken := k.n.named["dependencies"][field]; taken {
			part.fail(`join the two with "allOf"`, "the field has a schema under \"dependencies\" already")
		}
		k.n.dependOn(field, part.schema())
	}
}

func (k keyword) unique() {
	if unique, ok := wants[bool](k, "true or false", "true"); ok {
		k.n.compares = k.n.compares || unique
		k.n.form[k.key] = unique
	}
}

func anys(names []string) []any {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	return list
}
