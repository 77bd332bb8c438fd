package contract

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/strictjson"
)

// compiler walks a document of schemas once: it reports every mistake, takes the
// short type names, resolves references and makes the nodes.
type compiler struct {
	document any
	file     string // for findings
	rootless bool   // the document as a whole is no schema: it is a schema.json
	draft4   bool
	nodes    map[string]*node // by pointer
	findings []fault.Finding
	full     bool
}

func (c *compiler) add(f fault.Finding) {
	if c.full {
		return
	}
	f.File = c.file
	c.findings = append(c.findings, f)
	if len(c.findings) == MaxFindings {
		c.full = true
		c.findings = append(c.findings, fault.Finding{File: c.file, Message: "there are more problems than these"})
	}
}

func (c *compiler) fail(pointer, hint, format string, args ...any) {
	c.add(fault.Finding{Pointer: fault.Clip(pointer, strictjson.MaxPointerBytes), Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (c *compiler) warn(pointer, hint, format string, args ...any) {
	c.add(fault.Finding{Pointer: fault.Clip(pointer, strictjson.MaxPointerBytes), Message: fmt.Sprintf(format, args...), Hint: hint, Warning: true})
}

// schema returns the node for the value at the pointer, made once.
func (c *compiler) schema(v any, pointer string) *node {
	if n, ok := c.nodes[pointer]; ok {
		return n
	}
	n := &node{id: len(c.nodes), pointer: pointer}
	if len(c.nodes) == maxSubschemas {
		if !c.full {
			c.fail("", "split the capsule, or describe less", "the contract has more than %d schemas in it", maxSubschemas)
		}
		c.full = true
		return n
	}
	c.nodes[pointer] = n
	switch v := v.(type) {
	case bool:
		n.always = &v
	case map[string]any:
		c.object(n, v)
	default:
		c.fail(pointer, `write a schema there, such as {"type": "string"}`, "expected a schema (an object), got %s", kindOf(v))
	}
	return n
}

func (c *compiler) object(n *node, m map[string]any) {
	if ref, ok := m["$ref"]; ok {
		c.ref(n, ref, m)
		return
	}
	for _, key := range sorted(m) {
		c.keyword(n, key, m[key])
	}
	c.pairs(n)
	if n.filePath && (n.types&kindString == 0 || n.types&^(kindString|kindNull) != 0) {
		c.fail(n.pointer+"/format", `write "type": "string" beside it`, `the format file_path is for strings only`)
	}
}

func (c *compiler) keyword(n *node, key string, v any) {
	pointer := n.pointer + strictjson.Pointer(key)
	if read, ok := keywords[key]; ok {
		read(c, n, v, pointer)
		return
	}
	if hint, ok := newerKeywords[key]; ok {
		c.fail(pointer, hint, "draft-07 does not know %q and would ignore it", key)
		return
	}
	if annotations[key] || strings.HasPrefix(key, "x-") {
		return
	}
	c.warn(pointer, unknownHint(key, v), "%s is not a keyword of JSON Schema and is ignored", quote(key))
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

// ref resolves a local reference; the rest of the object is ignored, as draft-07 has it.
func (c *compiler) ref(n *node, v any, m map[string]any) {
	pointer := n.pointer + "/$ref"
	for _, key := range sorted(m) {
		if key == "definitions" || key == "$defs" || key == "$schema" || key == "$id" {
			c.keyword(n, key, m[key])
		} else if key != "$ref" && !annotations[key] {
			c.warn(n.pointer+strictjson.Pointer(key), `write {"allOf": [{"$ref": …}], …} to have both`, "%s stands beside $ref, where draft-07 ignores it", quote(key))
		}
	}
	text, ok := v.(string)
	if !ok {
		c.fail(pointer, `write a string such as "#/definitions/name"`, "expected a string, got %s", kindOf(v))
		return
	}
	target, value, ok := c.resolve(text, pointer)
	if !ok {
		return
	}
	n.ref = c.schema(value, target)
	n.ref.target = true
}

const localRefHint = `copy the schema into "definitions" and refer to it as "#/definitions/name"`

// resolve finds what a reference means, and nowhere but in this document.
func (c *compiler) resolve(ref, pointer string) (target string, value any, ok bool) {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		c.fail(pointer, localRefHint, "%s refers to another document; nothing is ever fetched or read", quote(ref))
		return "", nil, false
	}
	path, err := url.PathUnescape(fragment)
	if err != nil || path != "" && path[0] != '/' {
		c.fail(pointer, localRefHint, "%s is no JSON pointer", quote(ref))
		return "", nil, false
	}
	if path == "" && c.rootless {
		c.fail(pointer, `write "#/input" or "#/output"`, `"#" is the whole of schema.json, which is no schema itself`)
		return "", nil, false
	}
	tokens := strings.Split(path, "/")[1:]
	if path == "" {
		tokens = nil
	}
	for i := range tokens {
		tokens[i] = strictjson.Unescape(tokens[i])
	}
	value, ok = strictjson.Lookup(c.document, tokens)
	if !ok {
		c.fail(pointer, c.undefinedHint(tokens, pointer), "%s refers to something that isn't there", quote(ref))
		return "", nil, false
	}
	var b strings.Builder
	for _, token := range tokens {
		b.WriteString("/" + strictjson.Escape(token))
	}
	return b.String(), value, true
}

func (c *compiler) undefinedHint(tokens []string, pointer string) string {
	side, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	if _, ok := strictjson.Lookup(c.document, append([]string{side}, tokens...)); ok && c.rootless {
		return fmt.Sprintf("references start at the top of schema.json: write %q", "#"+strictjson.Pointer(append([]string{side}, tokens...)...))
	}
	return `references start at the top of the document, such as "#/definitions/name"`
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
