package capsule

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/capsule/skills"
)

// Capsule is a unit's directory that was read and found to keep the rules of its kind. That
// of an Agentic Unit is one with a contract that all of them have: see Schema.
type Capsule struct {
	Dir         string // absolute
	Name        string // agent.yaml's, else the directory's; see CheckName
	Kind        string // its Kind's name
	Version     string // may be empty
	Description string // may be empty
	Agent       Agent
	Tools       []Tool
	Skills      []skills.Skill // of a unit of KindCapsule
	Contract    *contract.Contract
	Remote      *Remote         // of a unit of KindRemote; nil of others
	MCP         *MCP            // of a unit of KindMCP; nil of others
	Flow        *flow.Flow      // of a unit of KindFlow; nil of others
	Wrapped     *agent.Config   // of a unit of KindAgent; nil of others
	Warnings    []fault.Finding // what is worth knowing and stops nothing

	dockerfile dockerfile
	schema     []byte // the document of the contract; nil: it is in schema.json
}

// Agent is what agent.yaml says beside the capsule's name. A zero field was not set,
// except where a default is named here.
type Agent struct {
	Model       string       `json:"model"`
	Models      []string     `json:"models"`
	Temperature *float64     `json:"temperature"` // nil: not set; 0 is a temperature
	MaxTokens   int64        `json:"max_tokens"`
	Loop        Loop         `json:"loop"`
	Limits      Limits       `json:"-"`
	Network     string       `json:"network"`     // "none" (the default) or "bridge"
	Egress      outside.List `json:"-"`           // hosts that it may reach by name
	ReadOnly    bool         `json:"-"`           // the root file system; default true
	Runtime     string       `json:"runtime"`     // isolation runtime, by the engine's name for it
	Concurrency int          `json:"concurrency"` // runs at once under a server; 0 is no bound of its own
	Budgets     Budgets      `json:"budgets"`
	Recursion   int          `json:"recursion"` // how often it may stand again on the path of calls to it
	// under a server, after an attempt that failed for a reason that may pass; nil: not set
	Retries *int `json:"retries"`
	// sandboxes that a server keeps started for its next runs; 0: as it is called
	Warm       int   `json:"warm"`
	Transcript *bool `json:"transcript"` // what it asks models is kept; nil: not set
	// how long an answer of a model is given again to the same request; 0: never
	ModelCache time.Duration `json:"-"`
	// runs that one container may serve under a server, one after the other; 0 and 1: one
	Reuse int `json:"reuse"`

	Needs     []string          `json:"needs"`     // labels of the machine on which it runs under a server
	Upstreams []string          `json:"upstreams"` // of the operator's that it may ask, by name
	Secrets   map[string]string `json:"secrets"`   // names of secrets, by the variables in which its program gets them
	A2A       A2A               `json:"a2a"`       // what clients of the Agent2Agent protocol are told

	// What follows is read, and each setting is named in Capsule.Warnings, because
	// this version doesn't act on it.
	Cache time.Duration `json:"-"`
}

// A2A is what a unit tells clients of the Agent2Agent protocol.
type A2A struct {
	Text string   `json:"text"` // the field of the input that takes the text of a message; "": the customary one
	Tags []string `json:"tags"` // of its skill
}

// Loop bounds the work of a model with the capsule's tools; the library in the sandbox keeps
// to it. Zero means not set, and nil of Repairs: 0 is a number of repairs.
type Loop struct {
	MaxTurns int    `json:"max_turns"`
	Parallel int    `json:"parallel"` // calls of one turn at a time
	Repairs  *int   `json:"repairs"`  // of an answer that breaks the contract
	Scripts  bool   `json:"scripts"`  // a model may run those of the skills
	Python   string `json:"python"`   // how the state of programs is kept, kept or fresh; "": there is no tool for them
}

// Limits are what a capsule asks for. Zero means not set: the defaults, and the caps
// on what may be asked for, are the runtime's business.
type Limits struct {
	Timeout     time.Duration
	MemoryBytes int64
	CPUs        float64
	PIDs        int64
	OutputBytes int64 // all output files together
	OutputFiles int   // how many
	LogBytes    int64 // stdout and stderr together
}

// Budgets bound everything that a capsule calls, all together. Zero means not set.
type Budgets struct {
	Depth  int      `json:"depth"`
	Calls  int      `json:"calls"`
	Tokens int64    `json:"tokens"` // of models, also its own
	Cost   api.Cost `json:"cost"`   // likewise
}

// Tool is one entry of tools.yaml.
type Tool struct {
	Name        string         `json:"name"`
	Capsule     string         `json:"capsule"` // whom it may call; "" for a function of its own
	Only        string         `json:"tool"`    // the one tool of an MCP server that it may call; "": all of them
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"` // a JSON Schema; nil where the callee's contract decides
	Sequential  bool           `json:"sequential"` // an agent runs it alone
	Timeout     time.Duration  `json:"-"`          // for which an agent waits for it; zero: without an end
}

// Schema returns the document of the capsule's contract: its schema.json, or what stands for
// that with an Agentic Unit. The error is a Capsule fault.
func (c *Capsule) Schema() ([]byte, error) {
	if c.schema != nil {
		return slices.Clone(c.schema), nil
	}
	raw, err := os.ReadFile(filepath.Join(c.Dir, "schema.json"))
	if err != nil {
		return nil, fault.Wrap(fault.Capsule, err, "the schema.json of %q can't be read", c.Name)
	}
	return raw, nil
}

// OwnContract reports whether the contract is that of a schema.json.
func (c *Capsule) OwnContract() bool { return c.schema == nil }

// IsAU reports whether the directory is an Agentic Unit's.
func (c *Capsule) IsAU() bool { return c.Kind == KindAU }
