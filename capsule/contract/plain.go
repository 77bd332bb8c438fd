package contract

import (
	"fmt"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// data are the keywords whose values aren't schemas.
var data = map[string]bool{"const": true, "default": true, "enum": true, "examples": true}

// byName are the keywords with an object of schemas: its names aren't keywords.
var byName = map[string]bool{
	"properties": true, "patternProperties": true, "dependencies": true,
	"dependentSchemas": true,
}

// plainer writes schemas of a compiled document plainly.
type plainer struct {
	compiled    *compiler
	names       map[string]string // of the definitions, by the pointer of what they hold
	definitions map[string]any
}

// plain writes the schema at a pointer plainly.
func (c *compiler) plain(pointer string) ([]byte, error) {
	p := plainer{compiled: c, names: map[string]string{}, definitions: map[string]any{}}
	value, _ := strictjson.Lookup(c.document.value, strictjson.Path(pointer))
	schema, _ := p.schema(value, pointer).(map[string]any)
	if len(p.definitions) > 0 {
		schema["$defs"] = p.definitions
	}
	return strictjson.Encode(schema)
}

func (p plainer) schema(v any, at string) any {
	switch v := v.(type) {
	case map[string]any:
		return p.object(v, at)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = p.schema(item, fmt.Sprintf("%s/%d", at, i))
		}
		return list
	}
	return v
}

func (p plainer) object(m map[string]any, at string) map[string]any {
	plain := map[string]any{}
	target, refers := p.compiled.targets[at+"/$ref"]
	for _, key := range sorted(m) { // so that definitions are numbered alike every time
		value, below := m[key], at+"/"+strictjson.Escape(key)
		switch {
		case refers && key == "$ref":
			plain[key] = "#/$defs/" + p.define(target)
		case key == "$schema" || key == "$id" || key == "id" || key == "definitions" || key == "$defs":
		case refers && p.compiled.document.draftAt(at) < draft2019 && !annotations[key]: // ignored there
		case key == "type":
			plain[key] = longNames(value)
		case byName[key]:
			plain[key] = p.named(value, below)
		case data[key]:
			plain[key] = value
		default:
			plain[key] = p.schema(value, below)
		}
	}
	return plain
}

func (p plainer) named(v any, at string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	plain := make(map[string]any, len(m))
	for _, name := range sorted(m) {
		plain[name] = p.schema(m[name], at+"/"+strictjson.Escape(name))
	}
	return plain
}

// define has the schema at a pointer among the definitions, and returns its name there.
func (p plainer) define(pointer string) string {
	if name, ok := p.names[pointer]; ok {
		return name
	}
	name := fmt.Sprintf("d%d", len(p.names)+1)
	p.names[pointer] = name
	value, _ := strictjson.Lookup(p.compiled.document.value, strictjson.Path(pointer))
	p.definitions[name] = p.schema(value, pointer)
	return name
}

// longNames writes the short names of types in full.
func longNames(v any) any {
	switch v := v.(type) {
	case string:
		if long, ok := aliases[v]; ok {
			return long
		}
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = longNames(item)
		}
		return list
	}
	return v
}
