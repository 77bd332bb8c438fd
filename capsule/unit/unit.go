// Package unit is what can be run by name, whatever its kind: a Unit with its contract, its policy and the definition
// that its kind has read. Unit.Govern makes the policy that a unit asks for the one that holds: with what an operator
// gives, within what he allows.
//
// Where units come from, and which of their versions is current, is capsule/registry.
//
// It must not know engines, runs or directories.
//
// Its Go API may change with every release: see docs/stability.md.
package unit

import (
	"maps"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// Kind is a kind of unit.
type Kind string

// The kinds of unit that a directory can hold. They are stored alike.
const (
	Capsule Kind = capsule.KindCapsule
	AU      Kind = capsule.KindAU
	Remote  Kind = capsule.KindRemote
	MCP     Kind = capsule.KindMCP
	Flow    Kind = capsule.KindFlow
	Agent   Kind = capsule.KindAgent
)

// Where a version came from.
const (
	FromDirectory = "directory"
	FromUpload    = "upload"
)

// Unit is something that can be run: what all kinds have in common, and the definition that
// its kind has read. One that a Registry gives is shared by its runs: don't change it.
type Unit struct {
	Name        string
	Kind        Kind
	Description string // may be empty
	Contract    *contract.Contract
	Policy      Policy
	Definition  Definition

	// Set by a Registry; zero for a unit that was read from a directory alone.
	Version string       // of the content: 16 hex digits
	Source  string       // FromDirectory or FromUpload
	Origin  string       // the directory that it was read from; "" for an upload
	By      string       // the name of the token that uploaded it, if it has one
	Team    string       // to which an upload belongs; "" of a directory, which is the operator's
	Since   time.Time    // when this version was first seen, in UTC
	Problem *fault.Error // the problem of a newer state, which is not used; nil: none
}

// Definition is the definition of a unit as its kind has read it.
type Definition interface {
	// Schema returns the document of the unit's contract, or a Capsule fault.
	Schema() ([]byte, error)
}

// Schema returns the document of the unit's contract, or a Capsule fault.
func (u *Unit) Schema() ([]byte, error) { return u.Definition.Schema() }

// How many runs of a wrapped agent may wait, and for how long (specification "Agent Wrapper").
const (
	agentQueue     = 10
	agentQueueWait = 30 * time.Minute
)

// Of returns the unit of a capsule that was read, with the policy that it asks for.
func Of(c *capsule.Capsule) *Unit {
	u := &Unit{
		Name: c.Name, Kind: Kind(c.Kind), Description: c.Description, Contract: c.Contract, Definition: c,
		Policy: Policy{
			Limits: c.Agent.Limits, Budgets: c.Agent.Budgets, Recursion: c.Agent.Recursion, A2A: c.Agent.A2A,
			Concurrency: c.Agent.Concurrency, Retries: c.Agent.Retries, Grants: grantsOf(c), Tools: toolsOf(c),
			Models: modelsOf(c.Agent), MaxTokens: c.Agent.MaxTokens, Transcript: c.Agent.Transcript == nil ||
				*c.Agent.Transcript, ModelCache: c.Agent.ModelCache,
		},
	}
	if c.Wrapped != nil {
		p := &u.Policy
		p.ReadWrite, p.Disabled, p.Queue, p.QueueWait = c.Wrapped.ReadWrite, c.Wrapped.Disabled, agentQueue,
			agentQueueWait
		p.Masking = maskingOf(c)
	}
	if c.Remote == nil && c.Flow == nil {
		p := &u.Policy
		p.Network, p.Writable, p.Isolation = c.Agent.Network, !c.Agent.ReadOnly, c.Agent.Runtime
		p.Upstreams, p.Secrets = c.Agent.Upstreams, c.Agent.Secrets
		p.Warm, p.Reuse, p.Fetches = c.Agent.Warm, c.Agent.Reuse, c.Fetches()
		p.Egress, p.Needs = c.Agent.Egress, c.Agent.Needs
	}
	return u
}

// maskingOf has a wrapped agent's texts masked. The output of a contract of its own is typed, and
// is what it says.
func maskingOf(c *capsule.Capsule) Masking {
	if c.OwnContract() {
		return MaskTexts
	}
	return MaskTextsAndOutput
}

// modelsOf are the models that agent.yaml names, the one of `model` first.
func modelsOf(a capsule.Agent) []string {
	var names []string
	for _, name := range append([]string{a.Model}, a.Models...) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Tools are the entries of a capsule's tools.yaml; a unit of another kind has none.
func (u *Unit) Tools() []capsule.Tool {
	if c, ok := u.Definition.(*capsule.Capsule); ok {
		return c.Tools
	}
	return nil
}

// SecretNames are the names of the secrets that the unit takes: those that its program gets, and the one that an
// agent elsewhere is sent.
func (u *Unit) SecretNames() []string {
	names := slices.Collect(maps.Values(u.Policy.Secrets))
	if c, ok := u.Definition.(*capsule.Capsule); ok && c.Remote != nil && c.Remote.Auth != nil {
		names = append(names, c.Remote.Auth.Secret)
	}
	return names
}

// grantsOf are the units that a capsule's tools.yaml lets it call, and those that a flow names.
func grantsOf(c *capsule.Capsule) []string {
	if c.Flow != nil {
		return c.Flow.UnitNames()
	}
	var names []string
	for _, tool := range c.Tools {
		if tool.Capsule != "" && !slices.Contains(names, tool.Capsule) {
			names = append(names, tool.Capsule)
		}
	}
	return names
}

// toolsOf are the tools of MCP servers to which the grants of a tools.yaml are narrowed, by
// unit. A unit that isn't there is granted whole.
func toolsOf(c *capsule.Capsule) map[string][]string {
	whole, tools := map[string]bool{}, map[string][]string{}
	for _, tool := range c.Tools {
		if tool.Only == "" {
			whole[tool.Capsule] = true
		} else {
			tools[tool.Capsule] = append(tools[tool.Capsule], tool.Only)
		}
	}
	maps.DeleteFunc(tools, func(name string, _ []string) bool { return whole[name] })
	return tools
}

// HasEffects reports whether a run of the unit may change something outside of its sandbox, beside what it calls: what
// was begun may have been done, and nobody knows when it is lost.
func (u *Unit) HasEffects() bool {
	p := u.Policy
	return p.ReadWrite || p.Network != "" && p.Network != NoNetwork || len(p.Egress) > 0 || len(p.Upstreams) > 0 ||
		len(p.Secrets) > 0
}
