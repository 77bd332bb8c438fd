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

const a2aGuide = "a2a-agents.md"

func TestTheAgentOfA2AShownLoads(t *testing.T) {
	text, blocks := readGuide(t, a2aGuide)
	dir := t.TempDir()
	for name, content := range map[string]string{"agent.yaml": blocks[0].text, "schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := capsule.Load(dir)
	if err != nil {
		t.Fatal(problems(err))
	}
	if !c.Remote.IsA2A() || !c.Remote.Stream || len(c.Warnings) > 0 {
		t.Errorf("%+v with the warnings %v", c.Remote, c.Warnings)
	}
	var file struct {
		Properties struct {
			Remote struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"remote"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schemas.Agent(), &file); err != nil {
		t.Fatal(err)
	}
	for key := range file.Properties.Remote.Properties {
		if !strings.Contains(text, "`"+key+"`") && key != "auth" {
			t.Errorf("the page doesn't speak of `%s`", key)
		}
	}
}

func TestTheExampleOfA2ALoads(t *testing.T) {
	c, err := capsule.Load("../examples/a2a-agent/unit")
	if err != nil {
		t.Fatal(problems(err))
	}
	if !c.Remote.IsA2A() || len(c.Warnings) > 0 {
		t.Errorf("%+v with the warnings %v", c.Remote, c.Warnings)
	}
}
