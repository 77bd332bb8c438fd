package docs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/schemas"
)

const elsewhereHeader = "Using an agent elsewhere as a unit"

func TestTheAgentElsewhereShownLoads(t *testing.T) {
	text, _ := readGuide(t, contractGuide)
	_, after, found := strings.Cut(sectionOf(t, text, elsewhereHeader), "```yaml\n")
	yaml, _, ended := strings.Cut(after, "```")
	if !found || !ended {
		t.Fatal("the guide shows no agent.yaml")
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"agent.yaml": yaml, "schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := capsule.Load(dir)
	if err != nil {
		t.Fatal(problems(err))
	}
	if c.Kind != capsule.KindRemote || len(c.Warnings) > 0 {
		t.Errorf("it is a %s with the warnings %v", c.Kind, c.Warnings)
	}
}

func TestTheTableOfAgentsElsewhereIsWhole(t *testing.T) {
	type object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	keysOf := func(raw json.RawMessage) map[string]json.RawMessage {
		var o object
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatal(err)
		}
		return o.Properties
	}
	text, _ := readGuide(t, contractGuide)
	section := sectionOf(t, text, elsewhereHeader)
	remote := keysOf(keysOf(schemas.Agent())["remote"])
	for key, schema := range remote {
		names := []string{key}
		if key == "auth" {
			names = nil
			for inner := range keysOf(schema) {
				names = append(names, "auth."+inner)
			}
		}
		for _, name := range names {
			if !strings.Contains(section, "`"+name+"`") {
				t.Errorf("it has no `%s`", name)
			}
		}
	}
}
