package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/xeipuuv/gojsonschema"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// FileName is the name of a contract within a capsule's directory.
const FileName = "schema.json"

// Contract is what a capsule takes and what it gives back.
type Contract struct{ Input, Output *Schema }

// Schema is one side of a contract, or a schema of its own. It is safe for
// concurrent use.
type Schema struct {
	raw      []byte
	plain    []byte
	root     *node
	compiled *gojsonschema.Schema
}

// Raw returns the schema as its author wrote it.
func (s *Schema) Raw() json.RawMessage { return bytes.Clone(s.raw) }

// topKeys may stand at the top of a schema.json.
var topKeys = map[string]bool{
	"input": true, "output": true, "$schema": true, "$id": true, "$defs": true,
	"definitions": true, "title": true, "description": true, "$comment": true,
}

// Parse compiles a schema.json of at most 256 KiB. It reports every problem at
// once; the contract is nil when one of them is not a warning. Findings carry the
// file's name and a pointer into it, or a line where the file isn't JSON.
//
// A reference is resolved against the whole file: "#/definitions/x", "#/$defs/x",
// "#/input/properties/y".
func Parse(raw []byte) (*Contract, []fault.Finding) {
	c := &compiler{
		file: FileName, rootless: true, drafts: map[string]draft{}, nodes: map[string]*node{},
		targets: map[string]string{},
	}
	top, ok := c.read(raw)
	if !ok {
		return nil, c.findings
	}
	c.declare(top["input"], "/input")
	c.declare(top["output"], "/output")
	c.top(top)
	contract := &Contract{Input: c.sideOf(top, "input"), Output: c.sideOf(top, "output")}
	c.measure()
	if !c.finish(contract.Input, "/input") || !c.finish(contract.Output, "/output") {
		return nil, c.findings
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		c.fail("", "", "the file could not be read again")
		return nil, c.findings
	}
	contract.Input.raw, contract.Output.raw = parts["input"], parts["output"]
	return contract, c.findings
}

// Compile compiles one schema that stands on its own, under the same rules. Its
// findings carry no file.
func Compile(raw []byte) (*Schema, []fault.Finding) {
	c := &compiler{drafts: map[string]draft{}, nodes: map[string]*node{}, targets: map[string]string{}}
	if _, ok := c.read(raw); !ok {
		return nil, c.findings
	}
	s := &Schema{raw: bytes.Clone(raw), root: c.schema(c.document, "")}
	c.measure()
	if !c.finish(s, "") {
		return nil, c.findings
	}
	return s, c.findings
}

// read decodes the document, which has to be an object.
func (c *compiler) read(raw []byte) (map[string]any, bool) {
	if len(raw) > maxContractBytes {
		c.fail("", "describe less, or move examples elsewhere", "it has %d bytes, the limit is %d", len(raw),
			maxContractBytes)
		return nil, false
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		c.fail("", `write {"input": {"type": "object"}, "output": {"type": "object"}}`, "it is empty")
		return nil, false
	}
	v, err := strictjson.Decode(raw)
	if bad := (*strictjson.Error)(nil); errors.As(err, &bad) {
		c.add(fault.Finding{
			Line: bad.Line, Pointer: bad.Pointer, Message: "not valid JSON: " + bad.Error(),
			Hint: bad.Hint,
		})
		return nil, false
	}
	top, ok := v.(map[string]any)
	if !ok {
		c.fail("", `write {"input": {"type": "object"}, "output": {"type": "object"}}`, "expected an object, got %s",
			kindOf(v))
	}
	c.document = v
	c.declare(top, "")
	return top, ok
}

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
			c.fail(strictjson.Pointer(key), hint, "the key %s is not known at the top of a contract", quote(key))
		}
	}
}

// sideOf compiles the input or the output, which judges JSON objects only.
func (c *compiler) sideOf(top map[string]any, name string) *Schema {
	v, ok := top[name]
	if !ok {
		c.fail("", `add "`+name+`": {"type": "object", "properties": {...}}`, "the contract has no %q", name)
		return nil
	}
	if _, ok := v.(map[string]any); !ok {
		c.fail("/"+name, `write {"type": "object", "properties": {...}}`, "expected a schema (an object), got %s",
			kindOf(v))
		return nil
	}
	root := c.schema(v, "/"+name)
	if !root.types.allows(kindObject) {
		c.fail("/"+name+"/type", `write "type": "object" and put the value into a field`,
			"the %s of a capsule is always an object, so that this could never be satisfied", name)
	}
	return &Schema{root: root}
}

// finish compiles the side for validation, if nothing stands against it.
func (c *compiler) finish(s *Schema, pointer string) bool {
	if len(fault.Errors(c.findings)) > 0 {
		return false
	}
	compiled, err := engineFor(documentOf(s.root))
	if err != nil {
		c.fail(pointer, "", "the schema can't be used: %s", show(err.Error()))
		return false
	}
	if s.plain, err = c.plain(pointer); err != nil {
		c.fail(pointer, "", "the schema can't be written plainly: %s", show(err.Error()))
		return false
	}
	s.compiled = compiled
	return true
}
