package capsule

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

// shape is one of our own schemas, for a file that a person wrote. It finds misspelt
// keys by itself, to say which was meant, and explains every violation with the
// description that the schema has of the place.
type shape struct {
	schema   map[string]any
	compiled *contract.Schema
	named    bool // messages begin with the key, for files whose findings have lines
}

// mustShape compiles a schema of our own. Conditions that combine keys are left out:
// the code that reads the file words them better.
func mustShape(schema map[string]any, named bool) shape {
	delete(schema, "anyOf")
	raw, err := json.Marshal(schema)
	if err != nil {
		panic("capsule: " + err.Error())
	}
	compiled, findings := contract.Compile(raw)
	if compiled == nil {
		panic("capsule: an embedded schema doesn't compile: " + findings[0].String())
	}
	return shape{schema: schema, compiled: compiled, named: named}
}

// parseSchema decodes an embedded schema, which is an object.
func parseSchema(raw []byte) map[string]any {
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		panic("capsule: " + err.Error())
	}
	return schema
}

// check returns what breaks the schema, by pointer. Unknown keys are reported and taken
// out of the value. Nothing is said a second time of a pointer in known, where the
// caller has found something better to say; the root, where missing keys are reported,
// is nobody's alone.
func (s shape) check(value map[string]any, known []fault.Finding) []fault.Finding {
	findings := unknownKeys(s.schema, value, "")
	payload, err := contract.NewPayload(value)
	if err != nil {
		return append(findings, fault.Finding{Message: "it can't be read as JSON: " + fault.Public(err).Msg})
	}
	said := map[string]bool{}
	for _, f := range known {
		said[f.Pointer] = true
	}
	for _, f := range s.compiled.Validate(payload) {
		if f.Pointer != "" && said[f.Pointer] {
			continue
		}
		if text := s.describe(f.Pointer); text != "" {
			f.Hint = text
		}
		if s.named {
			f.Message = named(f.Pointer, f.Message)
		}
		findings = append(findings, f)
	}
	return append(findings, known...)
}

// describe returns what the schema says about the place of a pointer, or of what is
// around it.
func (s shape) describe(pointer string) string {
	node := s.schema
	text, _ := node["description"].(string)
	for _, token := range strictjson.Path(pointer) {
		if node = subschema(node, token); node == nil {
			break
		}
		if own, ok := node["description"].(string); ok {
			text = own
		}
	}
	return text
}

// named puts the key that a pointer leads to before a message: "limits.cpus: …".
func named(pointer, message string) string {
	if pointer == "" {
		return message
	}
	return fault.Clip(strings.Join(strictjson.Path(pointer), "."), fault.MaxQuoted) + ": " + message
}

// subschema returns the schema of a key or an index, nil where there is none.
func subschema(node map[string]any, token string) map[string]any {
	properties, _ := node["properties"].(map[string]any)
	if sub, ok := properties[token].(map[string]any); ok {
		return sub
	}
	if sub, ok := node["additionalProperties"].(map[string]any); ok {
		return sub
	}
	if items, ok := node["items"].(map[string]any); ok {
		if _, err := strconv.Atoi(token); err == nil {
			return items
		}
	}
	return nil
}

// unknownKeys reports the keys that a closed object doesn't know, in the whole value,
// and removes them.
func unknownKeys(schema map[string]any, value any, pointer string) []fault.Finding {
	var findings []fault.Finding
	switch value := value.(type) {
	case map[string]any:
		closed := schema["additionalProperties"] == false
		for _, key := range slices.Sorted(maps.Keys(value)) {
			at := pointer + "/" + strictjson.Escape(key)
			if sub := subschema(schema, key); sub != nil {
				findings = append(findings, unknownKeys(sub, value[key], at)...)
			} else if closed {
				findings = append(findings,
					fault.Finding{
						Pointer: at, Message: "the key " + fault.Quote(key) + " is not known",
						Hint: keyHint(schema, key),
					})
				delete(value, key)
			}
		}
	case []any:
		for i, item := range value {
			token := strconv.Itoa(i)
			if sub := subschema(schema, token); sub != nil {
				findings = append(findings, unknownKeys(sub, item, pointer+"/"+token)...)
			}
		}
	}
	return findings
}

// keyHint says which key was probably meant: one of the same object, or one of an
// object in it ("timeout" belongs into "limits").
func keyHint(schema map[string]any, key string) string {
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		sub, _ := properties[name].(map[string]any)
		inner, _ := sub["properties"].(map[string]any)
		if _, ok := inner[key]; ok {
			return "it belongs into " + name
		}
	}
	return fault.Suggest(key, slices.Collect(maps.Keys(properties)), "leave it out")
}

// placed gives findings their file, and where the file has lines, their line.
func placed(findings []fault.Finding, d *strictyaml.Document, prefix string) []fault.Finding {
	for i, f := range findings {
		findings[i].File = d.File
		findings[i].Line = d.LineAt(prefix + f.Pointer)
		findings[i].Pointer = prefix + f.Pointer
	}
	return findings
}

// byLine sorts the findings of one file as a person meets them, top to bottom.
func byLine(findings []fault.Finding) []fault.Finding {
	slices.SortStableFunc(findings, func(a, b fault.Finding) int { return a.Line - b.Line })
	return findings
}
