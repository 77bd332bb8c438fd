package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// fileHint tells a model what to write where a contract wants a file.
const fileHint = "A file: a data: URI of up to 4 MiB, or aod://runs/ID/files/NAME of an earlier result"

// keywords are those that draft-07 and 2020-12 read alike. What isn't among them is said
// in other words, or left out.
var keywords = keywordSet(`$ref title description default examples type enum const multipleOf maximum exclusiveMaximum
	minimum exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems contains maxProperties
	minProperties required properties patternProperties additionalProperties propertyNames items if then else allOf
		anyOf
	oneOf not format readOnly writeOnly`)

// formats are the formats that both drafts name.
var formats = keywordSet(`date-time date time email hostname ipv4 ipv6 uri uri-reference uri-template json-pointer
	regex`)

// filePath is the format of a file's name in contracts.
const filePath = "file_path"

// ofNames are the keywords that a file's name has to keep, and what stands for it doesn't.
var ofNames = keywordSet(`maxLength minLength pattern enum const`)

func keywordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// toolSchema writes the plain schema of a contract's side as every client can read it, be it by
// draft-07 or by 2020-12: an object, without $schema, and with the files' fields explained.
func toolSchema(plain json.RawMessage, files string) (json.RawMessage, error) {
	document, err := strictjson.Decode(plain)
	if err != nil {
		return nil, err
	}
	root, _ := document.(map[string]any)
	definitions, _ := root["$defs"].(map[string]any)
	w := writer{files: files}
	schema, ok := w.schema(inlined(root, definitions)).(map[string]any)
	if !ok || schema == nil {
		schema = map[string]any{}
	}
	schema["type"] = "object"
	if len(definitions) > 0 {
		schema["$defs"] = w.named(definitions)
	}
	return strictjson.Encode(schema)
}

// inlined is a root that is more than a reference: clients look for properties there.
func inlined(root, definitions map[string]any) map[string]any {
	for range len(definitions) {
		target, ok := root["$ref"].(string)
		if !ok {
			break
		}
		at, _ := definitions[strings.TrimPrefix(target, "#/$defs/")].(map[string]any)
		merged := maps.Clone(at)
		for key, value := range root {
			if _, there := merged[key]; !there && key != "$ref" && merged != nil {
				merged[key] = value
			}
		}
		root = merged
	}
	return root
}

// writer writes schemas in the words that the drafts share.
type writer struct{ files string }

func (w writer) schema(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v // true or false
	}
	plain := map[string]any{}
	isFile := m["format"] == filePath && w.files != ""
	var also []any
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch value := m[key]; {
		case key == "$ref" && len(m) > 1:
			also = append(also, map[string]any{"$ref": value})
		case isFile && ofNames[key]: // for the name that the file gets
		case key == "format":
			w.format(plain, m, value)
		case key == "contains" && isZero(m["minContains"]): // asks for nothing
		case key == "items" || key == "prefixItems":
			w.items(plain, m)
		case key == "exclusiveMinimum" || key == "exclusiveMaximum":
			exclusive(plain, m, key)
		case key == "dependencies" || key == "dependentRequired" || key == "dependentSchemas":
			also = append(also, w.dependencies(value)...)
		case keywords[key]:
			plain[key] = w.value(key, value)
		}
	}
	return withAll(plain, also)
}

// withAll adds schemas that hold as well.
func withAll(plain map[string]any, also []any) map[string]any {
	if len(also) > 0 {
		all, _ := plain["allOf"].([]any)
		plain["allOf"] = append(also, all...)
	}
	return plain
}

// value writes what stands under a keyword.
func (w writer) value(key string, v any) any {
	switch key {
	case "properties", "patternProperties":
		named, _ := v.(map[string]any)
		return w.named(named)
	case "allOf", "anyOf", "oneOf":
		return w.list(v)
	case "additionalProperties", "propertyNames", "contains", "if", "then", "else", "not":
		return w.schema(v)
	}
	return v
}

func (w writer) named(m map[string]any) map[string]any {
	plain := make(map[string]any, len(m))
	for name, value := range m {
		plain[name] = w.schema(value)
	}
	return plain
}

func (w writer) list(v any) []any {
	list, _ := v.([]any)
	plain := make([]any, len(list))
	for i, schema := range list {
		plain[i] = w.schema(schema)
	}
	return plain
}

// format keeps a format that both drafts have, and says of a file what may stand there.
func (w writer) format(plain, m map[string]any, value any) {
	name, _ := value.(string)
	switch {
	case formats[name]:
		plain["format"] = name
	case name == filePath && w.files != "":
		said, _ := m["description"].(string)
		if said = strings.TrimRight(said, ". "); said != "" {
			said += ". "
		}
		plain["description"] = said + w.files
	}
}

// items writes lists. One draft has an array where the other has prefixItems, and the rest is
// under another name: where places differ, each element may be what any place takes.
func (w writer) items(plain, m map[string]any) {
	places, fixed := m["items"].([]any)
	rest, hasRest := m["additionalItems"]
	if prefix, ok := m["prefixItems"].([]any); ok {
		places, fixed = prefix, true
		rest, hasRest = m["items"]
	}
	if !fixed {
		plain["items"] = w.schema(m["items"])
		return
	}
	each := w.list(places)
	switch closed, isBool := rest.(bool); {
	case isBool && !closed:
		plain["maxItems"], m["maxItems"] = len(places), fewest(m["maxItems"], len(places))
	case !hasRest || isBool:
		return // anything may follow
	default:
		each = append(each, w.schema(rest))
	}
	if len(each) > 0 {
		plain["items"] = map[string]any{"anyOf": each}
	}
}

// dependencies says what fields ask for in words that both drafts have.
func (w writer) dependencies(v any) []any {
	fields, _ := v.(map[string]any)
	var all []any
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		then := fields[field]
		if names, ok := then.([]any); ok {
			then = map[string]any{"required": names}
		} else {
			then = w.schema(then)
		}
		all = append(all, map[string]any{"anyOf": []any{
			map[string]any{"not": map[string]any{"required": []any{field}}}, then,
		}})
	}
	return all
}

// exclusive writes a bound of draft-04, a flag beside the number, as a number.
func exclusive(plain, m map[string]any, key string) {
	flag, old := m[key].(bool)
	if !old {
		plain[key] = m[key]
		return
	}
	bound := map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}[key]
	if number, ok := m[bound]; ok && flag {
		plain[key] = number
	}
}

// fewest is the smaller of a bound that may be missing and a number.
func fewest(bound any, n int) any {
	given, ok := bound.(json.Number)
	if most, err := given.Int64(); ok && err == nil && most < int64(n) {
		return bound
	}
	return n
}

func isZero(v any) bool {
	n, ok := v.(json.Number)
	return ok && n.String() == "0"
}
