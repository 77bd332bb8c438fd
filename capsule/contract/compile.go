package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// compiler walks a document of schemas once: it reports every mistake, takes the short
// type names, resolves references and translates later drafts to draft-07.
type compiler struct {
	document any
	file     string            // for findings
	rootless bool              // the document as a whole is no schema: it is a schema.json
	drafts   map[string]draft  // that "$schema" declares: by the pointer of the document or side
	nodes    map[string]*node  // by pointer
	targets  map[string]string // of references: pointers, by the references' own
	findings []fault.Finding
	full     bool
}

func (c *compiler) add(f fault.Finding) {
	if c.full {
		return
	}
	f.File, f.Pointer = c.file, fault.Clip(f.Pointer, strictjson.MaxPointerBytes)
	c.findings = append(c.findings, f)
	if len(c.findings) == MaxFindings {
		c.full = true
		c.findings = append(c.findings, fault.Finding{File: c.file, Message: "there are more problems than these"})
	}
}

func (c *compiler) fail(pointer, hint, format string, args ...any) {
	c.add(fault.Finding{Pointer: pointer, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (c *compiler) warn(pointer, hint, format string, args ...any) {
	c.add(fault.Finding{Pointer: pointer, Message: fmt.Sprintf(format, args...), Hint: hint, Warning: true})
}

// schema returns the node for the value at the pointer, made once.
func (c *compiler) schema(v any, pointer string) *node {
	if n, ok := c.nodes[pointer]; ok {
		return n
	}
	n := newNode(len(c.nodes), pointer)
	if len(c.nodes) == maxSubschemas {
		if !c.full {
			c.fail("", "split the capsule, or describe less", "the contract has more than %d schemas in it",
				maxSubschemas)
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
		c.fail(pointer, `write a schema there, such as {"type": "string"}`, "expected a schema (an object), got %s",
			kindOf(v))
	}
	return n
}

func (c *compiler) object(n *node, m map[string]any) {
	n.notes = noted(m)
	ref, refers := m["$ref"]
	if refers && c.draftAt(n.pointer) < draft2019 {
		c.beside(n, m)
		c.refer(n, ref)
		return
	}
	for _, key := range sorted(m) {
		if key != "$ref" {
			c.keyword(n, key, m[key])
		}
	}
	c.prefix(n) // what later drafts have, in draft-07's form
	c.containing(n)
	c.dependent(n)
	if refers {
		c.refer(n, ref)
	}
	if all := append(slots(n.many["allOf"]), n.also...); len(all) > 0 { // has to hold beside all else
		n.form["allOf"] = all
	}
	c.pairs(n)
	if n.filePath && (n.types&kindString == 0 || n.types&^(kindString|kindNull) != 0) {
		c.fail(n.pointer+"/format", `write "type": "string" beside it`, `the format file_path is for strings only`)
	}
}

func (c *compiler) keyword(n *node, key string, v any) {
	at := n.pointer + strictjson.Pointer(key)
	if c.tooNew(n, key, at) || annotations[key] {
		return
	}
	if read, ok := keywords[key]; ok {
		read(c, n, key, v, at)
		return
	}
	if !strings.HasPrefix(key, "x-") {
		c.warn(at, unknownHint(key, v), "%s is not a keyword of JSON Schema and is ignored", quote(key))
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
			c.warn(n.pointer+strictjson.Pointer(key), `write {"allOf": [{"$ref": …}], …} to have both`,
				"%s stands beside $ref, where draft-07 ignores it", quote(key))
		}
	}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
