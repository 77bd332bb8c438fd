package schemas

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// words are what a schema of OpenAPI 3.0 may say, of what we do.
var words = []string{
	"$ref", "additionalProperties", "default", "description", "discriminator", "enum", "example", "exclusiveMinimum",
	"format", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minimum",
	"nullable", "oneOf", "pattern", "properties", "required", "title", "type",
}

func TestTheDocumentSpeaksOpenAPI30(t *testing.T) {
	t.Parallel()
	var document map[string]any
	if err := json.Unmarshal(OpenAPI(""), &document); err != nil {
		t.Fatal(err)
	}
	if document["openapi"] != "3.0.3" {
		t.Errorf("it says to be %q", document["openapi"])
	}
	seen := 0
	eachSchema(document, func(schema map[string]any) {
		seen++
		for word, v := range schema {
			_, several := v.([]any)
			if !strings.HasPrefix(word, "x-") && (!slices.Contains(words, word) || word == "type" && several) {
				t.Errorf("%q in %v", word, schema)
			}
		}
		if ref, _ := schema["$ref"].(string); strings.Count(ref, "/") > 3 {
			t.Errorf("%s has no type of its own", ref)
		}
	})
	if seen < 500 {
		t.Errorf("only %d schemas were seen", seen)
	}
}

// eachSchema finds the schemas in a document.
func eachSchema(v any, do func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			eachSchema(e, do)
		}
	case map[string]any:
		for key, e := range v {
			inner, _ := e.(map[string]any)
			switch key {
			case "schemas":
				for _, schema := range inner {
					within(schema.(map[string]any), do)
				}
			case "schema", "x-itemSchema":
				within(inner, do)
			default:
				eachSchema(e, do)
			}
		}
	}
}

// within are a schema and those in it.
func within(schema map[string]any, do func(map[string]any)) {
	do(schema)
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[key].(map[string]any); ok {
			within(inner, do)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, inner := range properties {
		within(inner.(map[string]any), do)
	}
	forms, _ := schema["oneOf"].([]any)
	for _, form := range forms {
		within(form.(map[string]any), do)
	}
}
