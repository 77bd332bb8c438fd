package schemas

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// component says a schema of draft-07 in the words of OpenAPI 3.0, whose schemas know neither definitions
// nor several types, constants or conditions.
type component struct {
	title string
	parts map[string]any // by their names in components/schemas
}

func (c component) add(part string, schema map[string]any) {
	definitions, _ := schema["definitions"].(map[string]any)
	for name, definition := range definitions {
		c.add(name, definition.(map[string]any))
	}
	for _, word := range []string{"$schema", "$id", "definitions"} {
		delete(schema, word)
	}
	c.choose(schema)
	c.parts[c.name(part)] = c.convert(schema)
}

// name is that of a part: a generated type has it.
func (c component) name(part string) string { return c.title + camel(part) }

var wordStart = regexp.MustCompile(`(^|_)[a-z]`)

func camel(words string) string {
	return wordStart.ReplaceAllStringFunc(words, func(s string) string { return strings.ToUpper(strings.Trim(s, "_")) })
}

func (c component) ref(part string) map[string]any {
	return map[string]any{"$ref": "#/components/schemas/" + c.name(part)}
}

// convert changes a schema, and those in it.
func (c component) convert(schema map[string]any) map[string]any {
	if ref, ok := schema["$ref"].(string); ok {
		return c.ref(strings.TrimPrefix(ref, "#/definitions/"))
	}
	if types, ok := schema["type"].([]any); ok {
		setTypes(schema, types)
	}
	if constant, ok := schema["const"]; ok {
		delete(schema, "const")
		schema["enum"] = []any{constant}
	}
	delete(schema, "propertyNames")
	for _, word := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[word].(map[string]any); ok {
			schema[word] = c.convert(inner)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, inner := range properties {
		properties[name] = c.convert(inner.(map[string]any))
	}
	for _, word := range []string{"oneOf", "anyOf"} {
		if forms, ok := schema[word].([]any); ok && onlyRequires(forms) {
			delete(schema, word) // said in the description
		}
	}
	return schema
}

// setTypes takes null for a property of the schema. Of several other types, it takes any: a generated
// type of their union is worse than one for all of JSON.
func setTypes(schema map[string]any, types []any) {
	others := slices.DeleteFunc(slices.Clone(types), func(t any) bool { return t == "null" })
	if len(others) > 1 {
		delete(schema, "type")
		return
	}
	schema["type"] = others[0]
	if len(others) == len(types) {
		return
	}
	schema["nullable"] = true
	if values, ok := schema["enum"].([]any); ok {
		schema["x-enum-varnames"] = constants(values)
	}
}

// constants name the values of an enumeration: null makes no name by itself.
func constants(values []any) []any {
	names := make([]any, len(values))
	for i, value := range values {
		text, _ := value.(string)
		names[i] = cmp.Or(camel(text), "None")
	}
	return names
}

func onlyRequires(forms []any) bool {
	return !slices.ContainsFunc(forms, func(form any) bool {
		_, requires := form.(map[string]any)["required"]
		return !requires || len(form.(map[string]any)) > 1
	})
}

// choose makes of a schema whose data depends on the event one of several, each with data of its own.
func (c component) choose(schema map[string]any) {
	conditions, ok := schema["allOf"].([]any)
	if !ok {
		return
	}
	var forms []any
	mapping := map[string]any{}
	for _, condition := range conditions {
		event := at(condition, "if", "properties", "event")["const"].(string)
		data := at(condition, "then", "properties", "data")
		data["type"] = "object"
		c.parts[c.name(event+"_data")] = c.convert(data)
		form := maps.Clone(schema)
		delete(form, "allOf")
		form["properties"] = maps.Clone(at(schema, "properties"))
		at(form, "properties")["event"] = map[string]any{"type": "string", "enum": []any{event}}
		at(form, "properties")["data"] = c.ref(event + "_data")
		c.parts[c.name(event)] = form
		forms = append(forms, c.ref(event))
		mapping[event] = c.ref(event)["$ref"]
	}
	data := at(schema, "properties", "data")["description"].(string)
	schema["description"] = schema["description"].(string) + " Its data is, of " + data
	maps.DeleteFunc(schema, func(word string, _ any) bool { return word != "description" })
	schema["oneOf"], schema["discriminator"] = forms, map[string]any{"propertyName": "event", "mapping": mapping}
}

// at is the object at a path of keys.
func at(v any, keys ...string) map[string]any {
	object := v.(map[string]any)
	for _, key := range keys {
		object = object[key].(map[string]any)
	}
	return object
}
