package servicetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// AnyContract takes and gives every object.
const AnyContract = `{"input": {"type": "object"}, "output": {"type": "object"}}`

// Unit adds a unit's directory to the first source.
func Unit(name string, files map[string]string) Option {
	return func(t testing.TB, s *Settings) {
		t.Helper()
		for file, content := range files {
			Write(t, filepath.Join(s.Sources[0], name, file), content)
		}
	}
}

// Capsule adds a unit of the kind capsule, with further lines for its agent.yaml and its schema.json. Its
// container runs the program.
func Capsule(name, agent, schema string, program Program) Option {
	files := Unit(name, map[string]string{
		"Dockerfile":  "FROM " + dockertest.Image + "\nCMD [\"" + name + "\"]\n",
		"tools.yaml":  "[]\n",
		"agent.yaml":  "name: " + name + "\n" + agent,
		"schema.json": schema,
	})
	return func(t testing.TB, s *Settings) {
		t.Helper()
		files(t, s)
		s.Programs[name] = program
	}
}

// Tools gives a unit its tools.yaml: whom it may call.
func Tools(name, tools string) Option { return Unit(name, map[string]string{"tools.yaml": tools}) }

// Flow adds a unit of the kind flow, with further lines for its agent.yaml.
func Flow(name, agent, graph string) Option {
	return Unit(name, map[string]string{
		"agent.yaml": "name: " + name + "\nkind: flow\n" + agent, "schema.json": AnyContract, "flow.yaml": graph,
	})
}

// Write writes a file, and the directories above it.
func Write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
