package capsule

import (
	"errors"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/schemas"
)

func TestMCPFileThatIsRight(t *testing.T) {
	for name, text := range map[string]string{
		"none":          missing,
		"no server":     `{"mcpServers": {}}`,
		"the least":     `{"mcpServers": {"notes": {"command": "notes"}}}`,
		"one of others": `{"mcpServers": {"my-notes_2": {"type": "stdio", "command": "python3", "args": ["src/main.py", "$HOME"], "env": {"MAX_TOKENS": "100", "TOKEN_FILE": "/tmp/t", "A": ""}}}}`,
		"all of it":     `{"mcpServers": {"notes": {"command": "x", "args": [], "env": {}, "tools": ["search", "a.b"], "timeout": "1m30s"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			loaded(t, newCapsule(t, map[string]string{"mcp.json": text}))
		})
	}
}

func TestMCPFileThatIsWrong(t *testing.T) {
	const tools = "- name: notes__search\n  capsule: other\n- name: notes__own\n  capsule: other\n"
	const head = "{\n  \"mcpServers\": {\n    "
	cases := []struct{ name, text, tools, want string }{
		{"no JSON", "{\n  \"mcpServers\": {,}}", "", "mcp.json:2: it isn't JSON: "},
		{"a name twice", "{\"mcpServers\": {},\n\"mcpServers\": {}}", "", `mcp.json:2: it isn't JSON: the field "mcpServers" stands twice`},
		{"no object", "[]", "", "mcp.json:1: it isn't a JSON object"},
		{"no servers", "{}", "", `mcp.json:1: required field "mcpServers" is missing`},
		{"an unknown key at its top", "{\"mcpServers\": {},\n\"inputs\": []}", "", `mcp.json:2: the key "inputs" is not known`},
		{"an unknown key", head + "\"notes\": {\"command\": \"x\",\n\"arg\": []}}}", "", `mcp.json:4: the key "arg" is not known (did you mean args?)`},
		{"no command", head + `"notes": {}}}`, "", `mcp.json:3: mcpServers.notes: required field "command" is missing`},
		{"a url", head + "\"far\": {\"type\": \"http\",\n\"url\": \"https://x/mcp\", \"headers\": {}}}}", "", "mcp.json:4: a sealed capsule reaches no server by a URL (have the server's program in the image"},
		{"another transport", head + "\"far\": {\"command\": \"x\",\n\"type\": \"sse\"}}}", "", `mcp.json:4: mcpServers.far.type: is not one of the allowed values: "stdio"`},
		{"a program that isn't there", head + "\"n\": {\"command\": \"python3\",\n\"args\": [\"./src/x.py\"]}}}", "", `mcp.json:4: there is no file "src/x.py" (add it, or fix the path`},
		{"a placeholder in an argument", head + "\"n\": {\"command\": \"x\", \"args\": [\"${HOME}/x\"]}}}", "", "mcp.json:3: ${…} stands for nothing here (write the value itself"},
		{"a placeholder in the environment", head + "\"n\": {\"command\": \"x\", \"env\": {\n\"A_TOKEN\": \"${TOKEN}\"}}}}", "", "mcp.json:4: ${…} stands for nothing here"},
		{"a secret by its name", head + "\"n\": {\"command\": \"x\", \"env\": {\n\"GITHUB_TOKEN\": \"abc123\"}}}}", "", "mcp.json:4: it looks like a secret, and whoever has the image can read it (take it out"},
		{"a secret by its form", head + "\"n\": {\"command\": \"x\", \"env\": {\n\"A\": \"ghp_0123456789abcdef\"}}}}", "", "mcp.json:4: it looks like a secret"},
		{"no variable", head + "\"n\": {\"command\": \"x\", \"env\": {\n\"A=B\": \"c\"}}}}", "", `mcp.json:4: "A=B" isn't a variable`},
		{"a bad name", head + `"my__notes": {"command": "x"}}}`, "", `mcp.json:3: "my__notes" is not a valid server name`},
		{"a long name", head + `"` + strings.Repeat("n", 33) + `": {"command": "x"}}}`, "", "is not a valid server name (use letters and digits"},
		{"a time without a unit", head + "\"n\": {\"command\": \"x\",\n\"timeout\": \"30\"}}}", "", `mcp.json:4: mcpServers.n.timeout: "30" isn't a duration`},
		{"two tools with one name", head + "\"n\": {\"command\": \"x\",\n\"tools\": [\"a.b\", \"a_b\"]}}}", "", `mcp.json:4: a model would have the tools "a.b" and "a_b" under one name (list one of them)`},
		{"a tool with a long name", head + "\"n\": {\"command\": \"x\",\n\"tools\": [\"" + strings.Repeat("t", 62) + "\"]}}}", "", "mcp.json:4: a model would have it as"},
		{"a tool of tools.yaml that is listed", head + `"notes": {"command": "x", "tools": ["search"]}}}`, tools, `mcp.json:3: the tool "notes__search" of tools.yaml has, or may have, the name of one of this server`},
		{"a tool of tools.yaml that may be there", head + `"notes": {"command": "x"}}}`, tools, `the tool "notes__own" of tools.yaml`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			changes := map[string]string{"mcp.json": c.text}
			if c.tools != "" {
				changes["tools.yaml"] = c.tools
			}
			_, err := Load(newCapsule(t, changes))
			var f *fault.Error
			if !errors.As(err, &f) {
				t.Fatalf("it was taken: %v", err)
			}
			var said []string
			for _, finding := range f.Findings {
				said = append(said, finding.String())
			}
			if !strings.Contains(strings.Join(said, "\n"), c.want) {
				t.Errorf("%s\nis not in\n%s", c.want, strings.Join(said, "\n"))
			}
		})
	}
}

func nothing(string) bool { return false }

func TestMCPFileSaysEachThingOnce(t *testing.T) {
	text := `{"mcpServers": {"far": {"type": "http", "url": "https://x", "headers": {"Authorization": "x"}}}}`
	if findings := checkMCP([]byte(text), nil, nothing); len(findings) != 1 {
		t.Errorf("%v", findings)
	}
}

func TestMCPFileIsOfCapsulesAlone(t *testing.T) {
	dir := newDirectory(t, map[string]string{"Dockerfile": "FROM scratch\nCMD [\"/x\"]\n", "agent.yaml": "name: it\nkind: au\n", "mcp.json": "{}"})
	_, err := Load(dir)
	if err == nil || !strings.Contains(fault.Public(err).Findings[0].String(), "mcp.json: an Agentic Unit has none") {
		t.Errorf("%v", err)
	}
}

func TestMCPFileIsInTheContextAndItsDigest(t *testing.T) {
	one := contextOf(t, newCapsule(t, map[string]string{"mcp.json": `{"mcpServers": {}}`}))
	two := contextOf(t, newCapsule(t, map[string]string{"mcp.json": `{"mcpServers": {"a": {"command": "x"}}}`}))
	if one.Digest == two.Digest || !strings.Contains(strings.Join(one.Files(), " "), "mcp.json") {
		t.Errorf("%v", one.Files())
	}
}

func FuzzMCPFile(f *testing.F) {
	f.Add(`{"mcpServers": {"notes": {"command": "python3", "args": ["src/notes.py"], "env": {"A": "b"}, "tools": ["search"], "timeout": "30s"}}}`)
	f.Add(`{"mcpServers": {"a__b": {"url": "https://x", "type": "http", "headers": {}}, "~/": {"command": "${X}", "env": {"A_KEY": "x"}}}}`)
	f.Add(`{"mcpServers": {"n": null, "m": [], "k": {"args": {"0": 1}, "tools": [1, "a", "a"]}}, "": 1}`)
	tools := []Tool{{Name: "n__x"}}
	fuzzbound.Run(f, func(t *testing.T, text string) {
		for _, finding := range checkMCP([]byte(text), tools, nothing) {
			if finding.File != "mcp.json" || finding.Line < 1 || finding.Line > 1+strings.Count(text, "\n") || finding.Message == "" {
				t.Errorf("%+v", finding)
			}
		}
	})
}

func TestMCPSchemaIsPublished(t *testing.T) {
	if schemas.Get("mcp") == nil {
		t.Error("it is not there")
	}
}

func TestServersThatNothingStartsAreAFinding(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int
	}{
		"without mcp.json": {map[string]string{"src/mcp_servers/a.py": ""}, 1},
		"with mcp.json":    {map[string]string{"src/mcp_servers/a.py": "", "mcp.json": `{"mcpServers": {"a": {"command": "a"}}}`}, 0},
		"no servers":       {nil, 0},
	} {
		d := Directory{}
		src, err := openSource(newDirectory(t, c.files))
		must(t, err)
		d.source = src
		d.checkServers(nil)
		src.close()
		if len(d.findings) != c.want || c.want > 0 && (!d.findings[0].Warning || d.findings[0].File != "src/mcp_servers") {
			t.Errorf("%s: %v", name, d.findings)
		}
	}
}
