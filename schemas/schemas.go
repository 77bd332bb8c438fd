// Package schemas holds the JSON Schemas (draft-07) of every file that a person
// writes for AOD and of every record that AOD writes for others. They are the one
// place where keys are listed: the loader validates with them, and an editor that
// is pointed at them completes and explains.
//
// Every object of ours is closed (additionalProperties: false), so a key that is
// misspelt is found. What a schema can't say, such as that "30s" is a duration of
// at least a millisecond, is checked by the package that reads the file.
package schemas

import "embed"

//go:embed *.schema.json
var files embed.FS

// Get returns the schema of that name, for example Get("agent"), or nil when there
// is none. The caller owns the bytes.
func Get(name string) []byte {
	raw, _ := files.ReadFile(name + ".schema.json") // nil where it isn't there
	return raw
}

// Agent returns the schema of agent.yaml.
func Agent() []byte { return must("agent") }

// Tools returns the schema of tools.yaml. Its root is an array.
func Tools() []byte { return must("tools") }

// Flow returns the schema of flow.yaml, for editors. Package flow finds more.
func Flow() []byte { return must("flow") }

// Schedules returns the schema of a file of schedules, as `aod schedule apply -f` reads it.
func Schedules() []byte { return must("schedules") }

// MCP returns the schema of mcp.json.
func MCP() []byte { return must("mcp") }

// TestCase returns the schema of a test case, tests/*.json.
func TestCase() []byte { return must("testcase") }

// Describe returns the schema of the model card that an Agentic Unit prints on
// --describe. Cards are written by others, so its objects are open.
func Describe() []byte { return must("describe") }

// AgentAnswer returns the schema of an answer of the agent HTTP contract. Answers are
// written by others, so its objects are open.
func AgentAnswer() []byte { return must("agentanswer") }

// DescribeLenient returns the schema of a model card that is odd but whole: with it the unit
// can be run.
func DescribeLenient() []byte { return must("describe-lenient") }

// must reads an embedded schema. One that is missing is a mistake of the build,
// which a test finds.
func must(name string) []byte {
	raw, err := files.ReadFile(name + ".schema.json")
	if err != nil {
		panic("schemas: " + err.Error())
	}
	return raw
}
