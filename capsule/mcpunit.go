package capsule

import (
	"cmp"
	_ "embed"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/capsule/contract"
)

// MCP is what a unit of KindMCP says of the sessions with its server.
type MCP struct {
	Tools   []string          `json:"tools"` // that are shown and may be called; nil: all
	Timeout time.Duration     `json:"-"`     // of a call
	Idle    time.Duration     `json:"-"`     // without a message after which a session over HTTP ends
	Env     map[string]string `json:"env"`   // of the server
}

// Offers reports whether a tool is shown and may be called.
func (m *MCP) Offers(tool string) bool { return m.Tools == nil || slices.Contains(m.Tools, tool) }

// mcpYAML is `mcp` of agent.yaml as it stands there.
type mcpYAML struct {
	MCP
	Timeout any `json:"timeout"`
	Idle    any `json:"idle"`
}

// What holds where agent.yaml doesn't say.
const (
	mcpTimeout = time.Minute
	mcpIdle    = 10 * time.Minute
	mcpSession = 24 * time.Hour // limits.timeout of a session
)

// mcpUnitSchema is the schema.json that no unit of KindMCP has: a run is a session.
//
//go:embed mcpunit.json
var mcpUnitSchema []byte

var mcpUnitContract = sync.OnceValue(func() *contract.Contract { return mustContract(mcpUnitSchema) })

// readMCP reads what makes a directory that of an MCP server.
func readMCP(d *Directory, c *Capsule) {
	c.dockerfile = d.checkDockerfile()
	c.Contract, c.schema = mcpUnitContract(), mcpUnitSchema
	c.Agent.Limits.Timeout = cmp.Or(c.Agent.Limits.Timeout, mcpSession)
	d.Refuse("an MCP server has none", "remove it: the server tells its tools itself, and it calls nobody",
		contract.FileName, toolsFile)
}

// mcp takes over what has the right form.
func (f *mcpYAML) mcp(u *units) *MCP {
	if f == nil {
		f = &mcpYAML{}
	}
	m := f.MCP
	m.Timeout = cmp.Or(u.duration("/mcp/timeout", f.Timeout, time.Second, 24*time.Hour), mcpTimeout)
	m.Idle = cmp.Or(u.duration("/mcp/idle", f.Idle, time.Second, 24*time.Hour), mcpIdle)
	return &m
}
