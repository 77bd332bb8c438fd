package capsule

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/schemas"
)

// A key that the schema lists and the code doesn't read would be accepted and lost.
func TestSchemaAndCodeKnowTheSameKeys(t *testing.T) {
	agent := parseSchema(schemas.Agent())
	tool := parseSchema(schemas.Tools())["items"].(map[string]any)
	testcase := parseSchema(schemas.TestCase())
	delete(testcase["properties"].(map[string]any), "$schema")
	expect := subschema(testcase, "expect")
	cases := []struct {
		name   string
		schema map[string]any
		value  any
	}{
		{"agent.yaml", agent, agentYAML{}},
		{"its limits", subschema(agent, "limits"), limitsYAML{}},
		{"its budgets", subschema(agent, "budgets"), Budgets{}},
		{"its agent elsewhere", subschema(agent, "remote"), remoteYAML{}},
		{"how that learns who asks", subschema(subschema(agent, "remote"), "auth"), authYAML{}},
		{"its loop", subschema(agent, "loop"), Loop{}},
		{"how sessions with it go", subschema(agent, "mcp"), mcpYAML{}},
		{"how a wrapped agent is called", subschema(agent, "agent"), commandYAML{}},
		{"how its output is read", subschema(subschema(agent, "agent"), "result"), resultYAML{}},
		{"how it is asked", subschema(subschema(agent, "agent"), "rpc"), rpcYAML{}},
		{"its workspace", subschema(agent, "workspace"), workspaceYAML{}},
		{"its session", subschema(agent, "session"), sessionYAML{}},
		{"a tool", tool, toolYAML{}},
		{"a case", testcase, caseJSON{}},
		{"what a case expects", expect, caseJSON{}.Expect},
		{"what it expects of a file", subschema(subschema(expect, "files"), "x"), ExpectFile{}},
		{"what it expects of an error", subschema(expect, "error"), ExpectError{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := slices.Sorted(maps.Keys(c.schema["properties"].(map[string]any)))
			var got []string
			for _, f := range reflect.VisibleFields(reflect.TypeOf(c.value)) {
				if key := f.Tag.Get("json"); !f.Anonymous && key != "-" {
					got = append(got, key)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
