package capsule

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

// mcpDir is a directory of an MCP server with further lines of agent.yaml and files.
func mcpDir(t *testing.T, more string, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{"agent.yaml": "name: memory\nkind: mcp\n" + more, "Dockerfile": "FROM scratch\nENTRYPOINT [\"/server\"]\n"}
	for _, name := range files {
		all[name] = "{}"
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAnMCPServerIsRead(t *testing.T) {
	c, err := Load(mcpDir(t, "mcp: {tools: [a], timeout: 30s, idle: 2m, env: {MODE: x}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &MCP{Tools: []string{"a"}, Timeout: 30 * time.Second, Idle: 2 * time.Minute, Env: map[string]string{"MODE": "x"}}
	if diff := cmp.Diff(want, c.MCP); diff != "" {
		t.Error(diff)
	}
	if c.MCP.Offers("b") || !c.MCP.Offers("a") {
		t.Error("it offers what isn't listed")
	}
	c, err = Load(mcpDir(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&MCP{Timeout: mcpTimeout, Idle: mcpIdle}, c.MCP); diff != "" || c.Agent.Limits.Timeout != mcpSession || !c.MCP.Offers("any") {
		t.Error(diff, c.Agent.Limits.Timeout)
	}
	if schema, err := c.Schema(); err != nil || c.Contract == nil || len(schema) == 0 {
		t.Error(err)
	}
}

func TestWhatIsWrongWithAnMCPServer(t *testing.T) {
	for _, c := range []struct {
		more, file, says string
	}{
		{"mcp: {env: {GITHUB_TOKEN: x}}\n", "", "looks like a secret"},
		{"mcp: {env: {db_password: x}}\n", "", "looks like a secret"},
		{"mcp: {env: {X: ghp_abcdefgh}}\n", "", "looks like a secret"},
		{"mcp: {env: {'A B': x}}\n", "", "mcp.env"},
		{"mcp: {timeout: 30}\n", "", "mcp.timeout"},
		{"mcp: {idle: 1ms}\n", "", "mcp.idle"},
		{"mcp: {tools: []}\n", "", "mcp.tools"},
		{"mcp: {command: x}\n", "", "command"},
		{"warm: 1\n", "", "no meaning for an MCP server"},
		{"remote: {url: https://x}\n", "", "kind remote"},
		{"", "schema.json", "an MCP server has none"},
		{"", "tools.yaml", "an MCP server has none"},
	} {
		var files []string
		if c.file != "" {
			files = []string{c.file}
		}
		_, err := Load(mcpDir(t, c.more, files...))
		if !fault.Is(err, fault.Capsule) {
			t.Errorf("%s%s: %v", c.more, c.file, err)
			continue
		}
		found := false
		for _, f := range fault.Public(err).Findings {
			found = found || strings.Contains(f.String(), c.says) && f.Hint != ""
		}
		if !found {
			t.Errorf("%s%s: %v", c.more, c.file, fault.Public(err).Findings)
		}
	}
	for name, value := range map[string]string{"TOKENIZER": "bpe", "MODE": "x", "MONKEY": "y", "API_TOKEN": "", "PATTERN": "z"} {
		if looksSecret(name, value) {
			t.Errorf("%s=%s looks like a secret", name, value)
		}
	}
}

func TestMCPIsForMCPServers(t *testing.T) {
	dir := mcpDir(t, "", "schema.json")
	agent := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(agent, []byte("name: memory\nmcp: {tools: [a]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(dir)
	if err == nil || !strings.Contains(fault.Public(err).Findings[0].String(), "mcp is for units of the kind mcp") {
		t.Error(err)
	}
}

func TestAToolOfAServerIsGranted(t *testing.T) {
	tool, findings := toolOf(map[string]any{"name": "x", "capsule": "memory", "tool": "read"})
	if len(findings) > 0 || tool.Capsule != "memory" || tool.Only != "read" {
		t.Errorf("%+v, %v", tool, findings)
	}
	if _, findings := toolOf(map[string]any{"name": "x", "tool": "read", "description": "d", "parameters": map[string]any{"type": "object"}}); len(findings) == 0 {
		t.Error("a tool without a server is taken")
	}
}
