package capsule

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/schemas"
)

const (
	mcpFile       = "mcp.json"
	mcpServersDir = "src/mcp_servers" // where capsules of the standard have them
	maxServerName = 32
	maxToolName   = 64 // of a model's tool: server__tool
)

var (
	mcpShape = sync.OnceValue(func() shape { return mustShape(parseSchema(schemas.MCP()), true) })

	serverName = lazyregexp.New(`^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$`)
	notInNames = lazyregexp.New(`[^A-Za-z0-9_-]`)
)

// mcpServer is an entry of mcp.json, as far as it is looked at.
type mcpServer struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Tools   []string          `json:"tools"`
}

// checkMCP finds what is wrong with the text of an mcp.json, each with its file and line. has
// reports whether something has a name in the capsule's directory.
func checkMCP(raw []byte, tools []Tool, has func(string) bool) []fault.Finding {
	findings := mcpFindings(raw, tools, has)
	for i, f := range findings {
		findings[i].File = mcpFile
		if f.Line == 0 {
			findings[i].Line = strictjson.LineAt(raw, strictjson.Path(f.Pointer))
		}
	}
	return byLine(findings)
}

func mcpFindings(raw []byte, tools []Tool, has func(string) bool) []fault.Finding {
	if _, err := strictjson.Decode(raw); err != nil {
		at := fault.Finding{
			Line: 1, Message: "it isn't JSON: " + err.Error(),
			Hint: "check the quotes, the commas and the brackets",
		}
		var broken *strictjson.Error
		if errors.As(err, &broken) {
			at.Line, at.Message = broken.Line, "it isn't JSON: "+broken.Message()
		}
		return []fault.Finding{at}
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return []fault.Finding{{
			Message: "it isn't a JSON object",
			Hint:    `write {"mcpServers": {"NAME": {"command": …}}}`,
		}}
	}
	servers, _ := object["mcpServers"].(map[string]any)
	var known []fault.Finding
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		known = append(known, checkServer(name, servers[name], tools, has)...)
	}
	return mcpShape().check(object, known)
}

// checkServer finds what the schema can't say, or says badly. What only servers elsewhere
// have is taken out of the entry, so that nothing is said of it twice.
func checkServer(name string, entry any, tools []Tool, has func(string) bool) []fault.Finding {
	u := units{}
	at := "/mcpServers/" + strictjson.Escape(name)
	if len(name) > maxServerName || !serverName().MatchString(name) {
		u.report(at, fault.Quote(name)+" is not a valid server name",
			fmt.Sprintf("use letters and digits, joined by single - or _, at most %d", maxServerName))
	}
	object, _ := entry.(map[string]any)
	s := decoded[mcpServer](object)
	if _, remote := object["url"]; remote {
		for _, key := range []string{"url", "headers", "type"} {
			delete(object, key)
		}
		object["command"] = "url" // else it would be missed
		u.report(at+"/url", "a sealed capsule reaches no server by a URL",
			"have the server's program in the image and name its command; or make it a unit of kind mcp, and grant "+
				"it in tools.yaml")
	}
	u.duration(at+"/timeout", object["timeout"], time.Millisecond, 168*time.Hour)
	u.checkTexts(at, s, has)
	u.checkEnv(at+"/env", s.Env)
	u.checkToolNames(at, name, s.Tools, tools)
	return u.findings
}
