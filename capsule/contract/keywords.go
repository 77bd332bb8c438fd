package contract

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/xeipuuv/gojsonschema"

	"github.com/agent-on-demand/aod/strictjson"
)

// keywords reads each keyword of draft-07 into a node.
var keywords map[string]func(c *compiler, n *node, v any, pointer string)

// annotations say something to people and nothing about values.
var annotations = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "$comment": true, "readOnly": true,
	"writeOnly": true, "deprecated": true, "contentMediaType": true, "contentEncoding": true,
}

// newerKeywords are those of later drafts, each with what draft-07 has for it.
var newerKeywords = map[string]string{
	"prefixItems":           `write the list as "items": [...] and what follows it as "additionalItems"`,
	"dependentRequired":     `write "dependencies": {"field": ["other"]}`,
	"dependentSchemas":      `write "dependencies": {"field": {...}}`,
	"unevaluatedProperties": `write all properties in one schema with "additionalProperties"`,
	"unevaluatedItems":      `write "additionalItems"`,
	"minContains":           `write "contains", which asks for one at least, or "minItems"`,
	"maxContains":           `write "contains" or "maxItems"`,
	"$dynamicRef":           `write "$ref": "#/definitions/name"`,
	"$recursiveRef":         `write "$ref": "#/definitions/name"`,
	"$dynamicAnchor":        `put the schema under "definitions"`,
	"$recursiveAnchor":      `put the schema under "definitions"`,
	"$anchor":               `put the schema under "definitions" and write "$ref": "#/definitions/name"`,
}

func init() { // a variable's initialiser may not refer to itself, and unknownHint does
	keywords = map[string]func(c *compiler, n *node, v any, pointer string){
		"$schema": (*compiler).draft, "$id": (*compiler).identifier, "id": (*compiler).identifier,
		"definitions": (*compiler).definitions, "$defs": (*compiler).definitions,
		"type": (*compiler).types, "format": (*compiler).format, "enum": (*compiler).enum, "const": (*compiler).constant,
		"pattern": (*compiler).pattern, "required": (*compiler).required, "uniqueItems": (*compiler).unique,
		"dependencies": (*compiler).dependencies, "items": (*compiler).items,
		"patternProperties": (*compiler).patternProperties,
		"properties":        func(c *compiler, n *node, v any, p string) { n.properties = c.schemas(v, p) },
		"multipleOf":        (*compiler).multipleOf, "minimum": (*compiler).bound, "maximum": (*compiler).bound,
		"exclusiveMinimum": (*compiler).exclusive, "exclusiveMaximum": (*compiler).exclusive,
	}
	for _, key := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
		keywords[key] = (*compiler).count
	}
	for key, field := range singles {
		keywords[key] = func(c *compiler, n *node, v any, p string) { *field(n) = c.schema(v, p) }
	}
	for key, field := range lists {
		keywords[key] = func(c *compiler, n *node, v any, p string) { *field(n) = c.schemaList(v, p) }
	}
}

// singles and lists are the keywords that hold one schema, or several.
var singles = map[string]func(*node) **node{
	"additionalProperties": func(n *node) **node { return &n.additionalProperties },
	"additionalItems":      func(n *node) **node { return &n.additionalItems },
	"propertyNames":        func(n *node) **node { return &n.propertyNames },
	"contains":             func(n *node) **node { return &n.contains },
	"not":                  func(n *node) **node { return &n.not },
	"if":                   func(n *node) **node { return &n.condition },
	"then":                 func(n *node) **node { return &n.then },
	"else":                 func(n *node) **node { return &n.els },
}

var lists = map[string]func(*node) *[]*node{
	"allOf": func(n *node) *[]*node { return &n.allOf },
	"anyOf": func(n *node) *[]*node { return &n.anyOf },
	"oneOf": func(n *node) *[]*node { return &n.oneOf },
}

// lastToken is the keyword that a reader was called for.
func lastToken(pointer string) string { return pointer[strings.LastIndexByte(pointer, '/')+1:] }

func (n *node) assert(pointer string, v any) {
	if n.asserts == nil {
		n.asserts = map[string]any{}
	}
	n.asserts[lastToken(pointer)] = v
}

// wants asserts that v is of the kind; if not it reports so.
func wants[T any](c *compiler, v any, pointer, want, example string) (T, bool) {
	t, ok := v.(T)
	if !ok {
		c.fail(pointer, "for example "+example, "expected %s, got %s", want, kindOf(v))
	}
	return t, ok
}

var knownDraft = regexp.MustCompile(`^https?://json-schema\.org/(draft-0[467]/)?schema#?$`)

func (c *compiler) draft(_ *node, v any, pointer string) {
	text, ok := wants[string](c, v, pointer, "a string", `"http://json-schema.org/draft-07/schema#"`)
	if !ok {
		return
	}
	if !knownDraft.MatchString(text) || !strings.Contains(text, "draft-0") {
		c.fail(pointer, `write "http://json-schema.org/draft-07/schema#", or leave $schema out`, "contracts are JSON Schema draft-07; this names another one")
	}
	c.draft4 = c.draft4 || strings.Contains(text, "draft-04")
}

// identifier allows an id at the top, where it means nothing to us. Further down it
// would change what "#/…" refers to.
func (c *compiler) identifier(n *node, v any, pointer string) {
	if _, ok := wants[string](c, v, pointer, "a string", `"https://example.com/name"`); !ok {
		return
	}
	if n.pointer != "" {
		c.fail(pointer, `remove it; "definitions" and "$ref": "#/definitions/name" do the same`, "an id within a contract would change what its references mean")
	}
}

func (c *compiler) definitions(_ *node, v any, pointer string) { c.schemas(v, pointer) }

func (c *compiler) schemas(v any, pointer string) map[string]*node {
	m, ok := wants[map[string]any](c, v, pointer, "an object of schemas", `{"name": {"type": "string"}}`)
	if !ok {
		return nil
	}
	nodes := make(map[string]*node, len(m))
	for _, key := range sorted(m) {
		nodes[key] = c.schema(m[key], pointer+"/"+strictjson.Escape(key))
	}
	return nodes
}

func (c *compiler) schemaList(v any, pointer string) []*node {
	list, ok := wants[[]any](c, v, pointer, "a list of schemas", `[{"type": "string"}]`)
	if !ok {
		return nil
	}
	if len(list) == 0 && lastToken(pointer) != "items" {
		c.fail(pointer, "put a schema in, or remove the keyword", "the list is empty")
	}
	nodes := make([]*node, len(list))
	for i, e := range list {
		nodes[i] = c.schema(e, fmt.Sprintf("%s/%d", pointer, i))
	}
	return nodes
}

func (c *compiler) items(n *node, v any, pointer string) {
	if _, ok := v.([]any); ok {
		n.tuple = c.schemaList(v, pointer)
		return
	}
	n.items = c.schema(v, pointer)
}

func (c *compiler) types(n *node, v any, pointer string) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) == 0 {
		c.fail(pointer, "name a type, or remove the keyword", "the list of types is empty")
	}
	for _, e := range list {
		name, ok := wants[string](c, e, pointer, "the name of a type", `"string"`)
		if !ok {
			continue
		}
		kind, ok := kindNamed(name)
		if !ok {
			c.fail(pointer, typeHint(name), "%s is no type; there are %s, and for short int, float, bool, dict, list", quote(name), strings.Join(kindNames, ", "))
		}
		n.types |= kind
	}
}

func typeHint(name string) string {
	if name == "file" || name == "path" || name == "file_path" {
		return `a file is "type": "string", "format": "file_path"`
	}
	if name == "str" || name == "text" {
		return `write "string"`
	}
	if name == "None" || name == "none" || name == "nil" {
		return `write "null"`
	}
	if near := nearest(name, append(sorted(aliases), kindNames...)); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "use one of them"
}

// FilePath is the format of a string that names a file.
const FilePath = "file_path"

func (c *compiler) format(n *node, v any, pointer string) {
	name, ok := wants[string](c, v, pointer, "the name of a format", `"date"`)
	switch {
	case !ok:
	case name == FilePath:
		n.filePath = true
	case gojsonschema.FormatCheckers.Has(name):
		n.assert(pointer, name)
	case nearest(strings.NewReplacer("-", "_", " ", "_").Replace(name), []string{FilePath, "file"}) != "":
		c.warn(pointer, `did you mean "file_path"?`, "the format %s is not known and is not checked", quote(name))
	default:
		c.warn(pointer, `the formats that are checked are file_path, date, time, date-time, email, hostname, ipv4, ipv6, uri, uuid, regex, json-pointer`, "the format %s is not known and is not checked", quote(name))
	}
}

func (c *compiler) enum(n *node, v any, pointer string) {
	list, ok := wants[[]any](c, v, pointer, "a list of the allowed values", `["small", "large"]`)
	if !ok {
		return
	}
	if len(list) == 0 {
		c.fail(pointer, "list the allowed values, or remove the keyword", "the list is empty, so that nothing would be allowed")
	}
	seen := map[string]bool{}
	for i, e := range list {
		text := canonical(e)
		if seen[text] {
			c.fail(fmt.Sprintf("%s/%d", pointer, i), "remove it", "the value stands in the list twice")
		}
		seen[text] = true
		n.quoted += len(text)
	}
	n.compares = true
	n.assert(pointer, list)
}

func (c *compiler) constant(n *node, v any, pointer string) {
	n.compares = true
	n.quoted += len(canonical(v))
	n.assert(pointer, v)
}

// canonical writes a value so that equal ones look equal: 1.0 is 1.
func canonical(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	var plain any
	if json.Unmarshal(text, &plain) != nil {
		return string(text)
	}
	text, _ = json.Marshal(plain) // it was just read
	return string(text)
}

func (c *compiler) names(v any, pointer string) []string {
	list, ok := wants[[]any](c, v, pointer, "a list of field names", `["name"]`)
	if !ok {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for i, e := range list {
		at := fmt.Sprintf("%s/%d", pointer, i)
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

func (c *compiler) required(n *node, v any, pointer string) {
	if _, ok := v.(bool); ok {
		c.fail(pointer, `list the names in the object's schema, beside "properties": "required": ["name"]`, "expected a list of field names, got boolean")
		return
	}
	n.required = c.names(v, pointer)
}

func (c *compiler) dependencies(n *node, v any, pointer string) {
	m, ok := wants[map[string]any](c, v, pointer, "an object", `{"card": ["address"]}`)
	if !ok {
		return
	}
	n.dependencies, n.dependentKeys = map[string]*node{}, map[string][]string{}
	for _, key := range sorted(m) {
		at := pointer + "/" + strictjson.Escape(key)
		if _, ok := m[key].([]any); ok {
			n.dependentKeys[key] = c.names(m[key], at)
			continue
		}
		n.dependencies[key] = c.schema(m[key], at)
	}
}
