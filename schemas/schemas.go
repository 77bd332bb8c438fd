package schemas

import (
	"embed"
	"slices"
)

//go:embed *.schema.json
var files embed.FS

// Names lists the schemas that Get knows, sorted.
func Names() []string {
	return []string{"agent", "config", "describe", "event", "page", "pool", "problem", "run", "submission", "testcase", "tools", "unit"}
}

// Get returns the schema of that name, for example Get("agent"), or nil when there
// is none. The caller owns the bytes.
func Get(name string) []byte {
	if !slices.Contains(Names(), name) {
		return nil
	}
	return must(name)
}

// Agent returns the schema of agent.yaml.
func Agent() []byte { return must("agent") }

// Tools returns the schema of tools.yaml. Its root is an array.
func Tools() []byte { return must("tools") }

// TestCase returns the schema of a test case, tests/*.json.
func TestCase() []byte { return must("testcase") }

// Config returns the schema of the server's configuration file. A test of the package
// config writes it.
func Config() []byte { return must("config") }

// Describe returns the schema of the model card that an Agentic Unit prints on
// --describe. Cards are written by others, so its objects are open.
func Describe() []byte { return must("describe") }

// Run returns the schema of a run's record, as `aod run --json` prints it.
func Run() []byte { return must("run") }

// must reads an embedded schema. One that is missing is a mistake of the build,
// which a test finds.
func must(name string) []byte {
	raw, err := files.ReadFile(name + ".schema.json")
	if err != nil {
		panic("schemas: " + err.Error())
	}
	return raw
}
