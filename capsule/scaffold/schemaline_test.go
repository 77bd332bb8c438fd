package scaffold

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"
	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/schemas"
)

// TestEditorsFindTheSchemaOfEachFile wants the schema that each file names to be one of ours, and
// the file to keep it.
func TestEditorsFindTheSchemaOfEachFile(t *testing.T) {
	parent, named := t.TempDir(), map[string]bool{}
	for _, template := range Templates() {
		files, err := Write(parent, "my-"+template.Name, template.Name)
		must(t, err)
		for _, name := range files {
			raw, err := os.ReadFile(filepath.Join(parent, name))
			must(t, err)
			schema, document := "", any(nil)
			switch base, dir := filepath.Base(name), filepath.Base(filepath.Dir(name)); {
			case filepath.Ext(base) == ".yaml":
				first, _, _ := strings.Cut(string(raw), "\n")
				schema, _ = strings.CutPrefix(first, "# yaml-language-server: $schema=")
				must(t, yaml.Unmarshal(raw, &document))
			case filepath.Ext(base) == ".json" && dir == "tests":
				must(t, json.Unmarshal(raw, &document))
				schema, _ = document.(map[string]any)["$schema"].(string)
			default:
				continue
			}
			id, is := strings.CutSuffix(path.Base(schema), ".schema.json")
			if !is || schema != schemasAt+path.Base(schema) || schemas.Get(id) == nil {
				t.Errorf("%s names the schema %q", name, schema)
				continue
			}
			named[id] = true
			result, err := gojsonschema.Validate(gojsonschema.NewBytesLoader(schemas.Get(id)), gojsonschema.NewGoLoader(document))
			if err != nil || !result.Valid() {
				t.Errorf("%s doesn't keep it: %v, %v", name, err, result.Errors())
			}
		}
	}
	for _, id := range []string{"agent", "tools", "flow", "testcase"} {
		if !named[id] {
			t.Errorf("no file names %s", id)
		}
	}
}
