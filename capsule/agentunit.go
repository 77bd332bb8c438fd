package capsule

import (
	"cmp"
	_ "embed"
	"strconv"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// What holds for a wrapped agent where agent.yaml doesn't say.
const (
	agentTimeout     = 5 * time.Minute
	agentMemory      = 2 * quantity.GiB
	agentCPUs        = 2
	agentPIDs        = 512
	agentConcurrency = 10
	agentProject     = quantity.GiB     // workspace.max
	agentIdle        = 30 * time.Minute // session.idle
)

// wrappedYAML is what agent.yaml says of a wrapped agent.
type wrappedYAML struct {
	Command   *commandYAML  `json:"agent"`
	Image     string        `json:"image"`
	Access    string        `json:"access"`
	Enabled   *bool         `json:"enabled"`
	Workspace workspaceYAML `json:"workspace"`
	Session   sessionYAML   `json:"session"`
}

// commandYAML is `agent` of agent.yaml.
type commandYAML struct {
	Command    []string          `json:"command"`
	Flags      map[string]any    `json:"flags"`
	Input      agent.Pattern     `json:"input"`
	Output     agent.Pattern     `json:"output"`
	InputFile  string            `json:"input_file"`
	OutputFile string            `json:"output_file"`
	Result     resultYAML        `json:"result"`
	Mode       agent.Mode        `json:"mode"`
	Protocol   agent.Protocol    `json:"protocol"`
	RPC        rpcYAML           `json:"rpc"`
	Resume     []string          `json:"resume"`
	Dir        string            `json:"dir"`
	Env        map[string]string `json:"env"`
	CallerEnv  []string          `json:"caller_env"`
	Approval   agent.Approval    `json:"approval"`
	Approvers  []string          `json:"approvers"`
	AskTime    any               `json:"approval_timeout"`
	ExitCodes  map[string]string `json:"exit_codes"`
}

type resultYAML struct {
	Format  agent.Format `json:"format"`
	Text    any          `json:"text"`
	Session any          `json:"session"`
	Usage   any          `json:"usage"`
	CostUSD any          `json:"cost_usd"`
	Error   any          `json:"error"`
}

type rpcYAML struct {
	Method  string        `json:"method"`
	Params  any           `json:"params"`
	Framing agent.Framing `json:"framing"`
}

type workspaceYAML struct {
	Write  bool     `json:"write"`
	Max    any      `json:"max"`
	Ignore []string `json:"ignore"`
}

type sessionYAML struct {
	Idle      any  `json:"idle"`
	KeepAlive bool `json:"keep_alive"`
}

// agentUnitSchema is the contract of a wrapped agent without a schema.json.
//
//go:embed agentunit.json
var agentUnitSchema []byte

var agentUnitContract = sync.OnceValue(func() *contract.Contract { return mustContract(agentUnitSchema) })

// readWrapped reads what makes a directory that of a wrapped agent.
func readWrapped(d *Directory, c *Capsule) {
	d.checkOrigin(c)
	c.Tools = d.Tools()
	d.checkServers(c.Tools)
	var fields []string
	if d.has(contract.FileName) {
		c.Contract, fields = d.Contract(), d.inputFields()
	} else {
		c.Contract, c.schema = agentUnitContract(), agentUnitSchema
	}
	d.findings = append(d.findings, byLine(placed(agent.Check(c.Wrapped, fields), d.yaml, ""))...)
	limits := &c.Agent.Limits
	limits.Timeout = cmp.Or(limits.Timeout, agentTimeout)
	limits.MemoryBytes = cmp.Or(limits.MemoryBytes, agentMemory)
	limits.CPUs, limits.PIDs = cmp.Or(limits.CPUs, agentCPUs), cmp.Or(limits.PIDs, agentPIDs)
	c.Agent.Concurrency = cmp.Or(c.Agent.Concurrency, agentConcurrency)
}

// wrapped takes over what has the right form.
func (f wrappedYAML) wrapped(u *units, upstreams []string) *agent.Config {
	a := f.Command
	if a == nil {
		a = &commandYAML{}
	}
	c := &agent.Config{
		Command: a.Command, Flags: a.Flags, Input: cmp.Or(a.Input, agent.Stdin), Output: cmp.Or(a.Output, agent.Stdout),
		InputFile: a.InputFile, OutputFile: a.OutputFile, Result: a.Result.result(), Mode: cmp.Or(a.Mode, agent.Task),
		Protocol: a.Protocol,
		RPC:      agent.RPC(a.RPC), Resume: a.Resume, Dir: a.Dir, Env: a.Env, CallerEnv: a.CallerEnv,
		Approval: cmp.Or(a.Approval, agent.Deny), Approvers: a.Approvers,
		ExitCodes: exitCodes(a.ExitCodes), Image: f.Image, Upstreams: upstreams, ReadWrite: f.Access == "read-write",
		Disabled: f.Enabled != nil && !*f.Enabled,
	}
	c.Workspace = agent.Workspace{
		Write: f.Workspace.Write, Ignore: f.Workspace.Ignore,
		Max: cmp.Or(u.size("/workspace/max", f.Workspace.Max, 1, 16*quantity.TiB), agentProject),
	}
	c.AskTime = u.duration("/agent/approval_timeout", a.AskTime, time.Second, 24*time.Hour)
	c.Session = agent.Session{
		KeepAlive: f.Session.KeepAlive,
		Idle:      u.duration("/session/idle", f.Session.Idle, time.Second, 168*time.Hour),
	}
	if c.Mode == agent.Interactive {
		c.Session.Idle = cmp.Or(c.Session.Idle, agentIdle)
	}
	return c
}

func (f resultYAML) result() agent.Result {
	return agent.Result{
		Format: cmp.Or(f.Format, agent.Text),
		Text:   pick(f.Text), Session: pick(f.Session), Usage: pick(f.Usage), CostUSD: pick(f.CostUSD),
		Error: pick(f.Error),
	}
}

// pick reads a JSON pointer, or {at, when}.
func pick(value any) *agent.Pick {
	switch value := value.(type) {
	case string:
		return &agent.Pick{At: value}
	case map[string]any:
		p := &agent.Pick{}
		p.At, _ = value["at"].(string)
		p.When, _ = value["when"].(map[string]any)
		return p
	}
	return nil
}

func exitCodes(codes map[string]string) map[int]string {
	if codes == nil {
		return nil
	}
	numbers := make(map[int]string, len(codes))
	for text, category := range codes {
		if n, err := strconv.Atoi(text); err == nil { // else the schema says it
			numbers[n] = category
		}
	}
	return numbers
}

// forWrapped are the keys that wrapped agents alone have.
var forWrapped = []string{"agent", "image", "access", "enabled", "workspace", "session"}
