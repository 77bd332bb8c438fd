package contract

import (
	"fmt"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// reader reads one keyword of a schema into its node; at is the pointer of the value.
type reader func(c *compiler, n *node, key string, v any, at string)

// keywords has a reader for each keyword that says something about values.
var keywords map[string]reader

// annotations say something to people and nothing about values.
var annotations = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "$comment": true, "readOnly": true,
	"writeOnly": true, "deprecated": true, "contentMediaType": true, "contentEncoding": true, "contentSchema": true,
	"discriminator": true, // OpenAPI's, beside a oneOf that says the same
}

func init() { // a variable's initialiser may not refer to itself, and unknownHint does
	keywords = map[string]reader{
		"$schema": (*compiler).draft, "type": (*compiler).types, "format": (*compiler).format,
		"enum": (*compiler).enum, "const": (*compiler).constant, "pattern": (*compiler).pattern,
		"required": (*compiler).required, "uniqueItems": (*compiler).unique, "multipleOf": (*compiler).multipleOf,
		"properties": (*compiler).properties, "patternProperties": (*compiler).patternProperties, "items": (*compiler).
				items,
	}
	group := func(read reader, keys ...string) {
		for _, key := range keys {
			keywords[key] = read
		}
	}
	group((*compiler).identifier, "$id", "id")
	group((*compiler).definitions, "definitions", "$defs")
	group((*compiler).number, "minimum", "maximum")
	group((*compiler).exclusive, "exclusiveMinimum", "exclusiveMaximum")
	group((*compiler).count, "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
		"minContains", "maxContains")
	group((*compiler).single, "additionalProperties", "additionalItems", "propertyNames", "contains", "not", "if",
		"then", "else")
	group((*compiler).list, "allOf", "anyOf", "oneOf", "prefixItems")
	group((*compiler).dependencies, "dependencies", "dependentRequired", "dependentSchemas")
}

// wants asserts that v is of the kind; if not it reports so.
func wants[T any](c *compiler, v any, at, want, example string) (T, bool) {
	t, ok := v.(T)
	if !ok {
		c.fail(at, "for example "+example, "expected %s, got %s", want, kindOf(v))
	}
	return t, ok
}

func (c *compiler) draft(_ *node, _ string, v any, at string) {
	text, ok := wants[string](c, v, at, "a string", `"http://json-schema.org/draft-07/schema#"`)
	if _, known := draftNamed(text); ok && !known {
		c.fail(at, `write "http://json-schema.org/draft-07/schema#", or leave $schema out`,
			"contracts are JSON Schema draft-04 to 2020-12; this names another one")
	}
}

// identifier allows an id at the top, where it means nothing to us. Further down it
// would change what "#/…" refers to.
func (c *compiler) identifier(n *node, _ string, v any, at string) {
	if _, ok := wants[string](c, v, at, "a string", `"https://example.com/name"`); ok && n.pointer != "" {
		c.fail(at, `remove it; "definitions" and "$ref": "#/definitions/name" do the same`,
			"an id within a contract would change what its references mean")
	}
}

func (c *compiler) definitions(_ *node, _ string, v any, at string) { c.schemas(v, at) }

// schemas reads an object of schemas.
func (c *compiler) schemas(v any, at string) map[string]*node {
	m, ok := wants[map[string]any](c, v, at, "an object of schemas", `{"name": {"type": "string"}}`)
	if !ok {
		return nil
	}
	nodes := make(map[string]*node, len(m))
	for _, key := range sorted(m) {
		nodes[key] = c.schema(m[key], at+"/"+strictjson.Escape(key))
	}
	return nodes
}

func (c *compiler) properties(n *node, key string, v any, at string) {
	if nodes := c.schemas(v, at); len(nodes) > 0 {
		n.named[key], n.form[key] = nodes, slotsByName(nodes)
	}
}

func (c *compiler) single(n *node, key string, v any, at string) {
	child := c.schema(v, at)
	n.one[key], n.form[key] = child, child.slot()
}

// list reads a list of schemas, which may be empty where it says something of items.
func (c *compiler) list(n *node, key string, v any, at string) {
	list, ok := wants[[]any](c, v, at, "a list of schemas", `[{"type": "string"}]`)
	if !ok {
		return
	}
	if len(list) == 0 && key != "items" && key != "prefixItems" {
		c.fail(at, "put a schema in, or remove the keyword", "the list is empty")
	}
	nodes := make([]*node, len(list))
	for i, e := range list {
		nodes[i] = c.schema(e, fmt.Sprintf("%s/%d", at, i))
	}
	n.many[key] = nodes
	if len(nodes) > 0 {
		n.form[key] = slots(nodes)
	}
}

func (c *compiler) items(n *node, key string, v any, at string) {
	if _, ok := v.([]any); ok {
		c.list(n, key, v, at)
		return
	}
	c.single(n, key, v, at)
}

func (c *compiler) names(v any, at string) []string {
	list, ok := wants[[]any](c, v, at, "a list of field names", `["name"]`)
	if !ok {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for i, e := range list {
		at := fmt.Sprintf("%s/%d", at, i)
		name, ok := wants[string](c, e, at, "the name of a field", `"name"`)
		if ok && seen[name] {
			c.fail(at, "remove it", "the name stands in the list twice")
		}
		if ok && !seen[name] {
			names = append(names, name)
		}
		seen[name] = true
	}
	return names
}

func (c *compiler) required(n *node, key string, v any, at string) {
	if _, ok := v.(bool); ok {
		c.fail(at, `list the names in the object's schema, beside "properties": "required": ["name"]`,
			"expected a list of field names, got boolean")
		return
	}
	if n.required = c.names(v, at); len(n.required) > 0 {
		n.form[key] = anys(n.required)
	}
}

// dependencies reads what a field that is there asks for: names, a schema, or either of
// them. The form is written by dependent.
func (c *compiler) dependencies(n *node, key string, v any, at string) {
	m, ok := wants[map[string]any](c, v, at, "an object", `{"card": ["address"]}`)
	if !ok {
		return
	}
	for _, field := range sorted(m) {
		at := at + "/" + strictjson.Escape(field)
		if _, list := m[field].([]any); list && key == "dependencies" || key == "dependentRequired" {
			n.depend(field, c.names(m[field], at))
			continue
		}
		if _, taken := n.named["dependencies"][field]; taken {
			c.fail(at, `join the two with "allOf"`, "the field has a schema under \"dependencies\" already")
		}
		n.dependOn(field, c.schema(m[field], at))
	}
}

func (c *compiler) unique(n *node, key string, v any, at string) {
	if unique, ok := wants[bool](c, v, at, "true or false", "true"); ok {
		n.compares = n.compares || unique
		n.form[key] = unique
	}
}

func anys(names []string) []any {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	return list
}
