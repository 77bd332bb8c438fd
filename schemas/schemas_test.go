package schemas

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"
)

func TestEverySchema(t *testing.T) {
	entries, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".schema.json")
		t.Run(name+" is a draft-07 schema", func(t *testing.T) {
			loader := gojsonschema.NewSchemaLoader()
			loader.Validate = true
			loader.Draft = gojsonschema.Draft7
			if _, err := loader.Compile(gojsonschema.NewBytesLoader(Get(name))); err != nil {
				t.Error(err)
			}
		})
		t.Run(name+" explains and closes everything", func(t *testing.T) {
			var schema map[string]any
			if err := json.Unmarshal(Get(name), &schema); err != nil {
				t.Fatal(err)
			}
			check(t, "", schema)
		})
	}
	if Get("nope") != nil || Get("../agent") != nil {
		t.Error("a schema that there isn't")
	}
}

// open are the objects whose keys are not ours to name.
var open = []string{"/items/properties/parameters", "/properties/input", "/output"}

func check(t *testing.T, at string, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	if _, closed := schema["additionalProperties"]; !closed && isObject(schema) && !isOpen(at) {
		t.Errorf("%s takes any key", at)
	}
	for key, sub := range properties {
		sub := sub.(map[string]any)
		if _, elsewhere := sub["$ref"]; elsewhere {
			continue // explained where it is defined
		}
		if text, _ := sub["description"].(string); text == "" {
			t.Errorf("%s/%s has no description", at, key)
		}
		check(t, at+"/properties/"+key, sub)
	}
	definitions, _ := schema["definitions"].(map[string]any)
	for name, sub := range definitions {
		check(t, at+"/definitions/"+name, sub.(map[string]any))
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if sub, ok := schema[key].(map[string]any); ok {
			check(t, at+"/"+key, sub)
		}
	}
}

func isObject(schema map[string]any) bool {
	switch kind := schema["type"].(type) {
	case string:
		return kind == "object"
	case []any:
		for _, k := range kind {
			if k == "object" {
				return true
			}
		}
	}
	return false
}

func isOpen(at string) bool {
	for _, suffix := range open {
		if strings.HasSuffix(at, suffix) {
			return true
		}
	}
	return false
}

// TestWhatAScheduleSaysIsTheSameEverywhere holds the three places against one another in which a
// schedule can be written.
func TestWhatAScheduleSaysIsTheSameEverywhere(t *testing.T) {
	var spec, shown struct{ Properties map[string]any }
	var file struct {
		Each struct{ Properties map[string]any } `json:"additionalProperties"`
	}
	for name, into := range map[string]any{"schedulespec": &spec, "schedule": &shown, "schedules": &file} {
		if err := json.Unmarshal(Get(name), into); err != nil {
			t.Fatal(err)
		}
	}
	for key, property := range spec.Properties {
		if !reflect.DeepEqual(property, shown.Properties[key]) || !reflect.DeepEqual(property, file.Each.Properties[key]) {
			t.Errorf("%s isn't the same", key)
		}
	}
	if len(file.Each.Properties) != len(spec.Properties)+1 {
		t.Errorf("a file has %d properties, not those of a specification and files", len(file.Each.Properties))
	}
}
