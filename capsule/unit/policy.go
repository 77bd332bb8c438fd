package unit

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/outside"
)

// Policy says how a unit is run. Of a unit that was read from a directory alone it is what
// the unit asks for; Govern makes it what holds. Zero fields were not set.
type Policy struct {
	Change      int // how often the operator had changed what is given to units, when this one was
	Limits      capsule.Limits
	Budgets     capsule.Budgets     // of its calls
	Recursion   int                 // how often it may occur again on the path of calls to it
	Concurrency int                 // runs at once
	ReadWrite   bool                // its runs change something that they share: one at a time
	Disabled    bool                // its directory says so, see agent.Config; the operator's word counts more
	Queue       int                 // runs that may wait under a server; 0: as many as the server has
	QueueWait   time.Duration       // for which one may wait there; 0: as long as the server has it
	Retries     *int                // after a transient error; nil: not set
	Grants      []string            // units that it may call, each once
	Tools       map[string][]string // those of MCP servers to which a grant is narrowed, by unit

	Models     []string      // the names of models that it may ask for
	MaxTokens  int64         // the cap of each answer; 0: the model's
	Transcript bool          // what it asks models may be kept
	ModelCache time.Duration // for which an answer of a model is given again; 0: never

	// Of a unit that runs in a sandbox.
	Needs     []string     // labels of the machine on which it runs
	Network   string       // "none" or "bridge"; "" where there is no sandbox
	Egress    outside.List // hosts that it may reach by name
	Writable  bool         // the root file system
	Isolation string       // the engine's name of an isolation runtime; "" is its default
	A2A       capsule.A2A  // what clients of that protocol are told
	Warm      int          // sandboxes that wait for its runs; 0: as it is called
	Reuse     int          // runs that one container may serve; 0 and 1: one
	Fetches   string       // what its Dockerfile fetches by itself; "": nothing
	Env       map[string]string
	Upstreams []string          // of the operator's that it may ask, by name
	Secrets   map[string]string // names of secrets, by the variables in which its program gets them

	Masking Masking // of what is stored and shown of its runs

	Given   capsule.Limits // those of Limits that the operator has set
	Bounds  Bounds         // what nobody may exceed, also no request
	Lowered []Lowered      // what was asked for beyond the bounds
	Refusal *fault.Error   // why the unit may not be run; nil: it may
}

// Masking says which texts of a unit's runs have secrets and addresses masked before they are
// stored and shown (package mask). It is stored with runs.
type Masking string

// What is masked. Files never are.
const (
	MaskNothing        Masking = ""
	MaskTexts          Masking = "texts"  // input, log, events, errors, questions
	MaskTextsAndOutput Masking = "output" // and the strings of the output, but for addresses
)

// Given is what an operator gives a unit beside what it asks for itself. A zero field leaves
// the unit's own.
type Given struct {
	Env        map[string]string // plain values, never secrets
	Models     []string          // that it may ask for, instead of those that it names; nil: its own
	Budgets    capsule.Budgets   // of Tokens and Cost; the smaller one counts
	Needs      []string          // labels, beside its own
	Network    string            // "none" or "bridge"
	MayCall    []string          // units beside those of its tools.yaml
	MayNotCall []string          // units, whatever its tools.yaml says
	Limits     capsule.Limits    // instead of its own; no request may have a longer Timeout
	Retries    *int
	Warm       *int
	ReadWrite  *bool // of Policy
}

// Bounds are the most that an operator lets a unit have. Zero fields bound nothing.
type Bounds struct {
	Limits   capsule.Limits
	Retries  *int
	Warm     *int
	Reuse    *int
	Networks []string     // that it may have
	Egress   outside.List // the most that it may reach by name; nil: any
	Runtimes []string     // that it may ask for; AnyRuntime is all
	Runtime  string       // that it has, whatever it asks for; "" forces none
	Sealed   bool         // its root file system has to be read-only

	// Of the build of its image.
	BuildNetwork  string   // what builds have: NoNetwork, or the engine's own
	BuildNetworks []string // of which it may have; nil: any
	NoFetch       bool     // its Dockerfile may not fetch by itself; see capsule.Capsule.Fetches
	ImageBytes    int64    // of its image, with what that stands on; 0: any

	// Of services outside.
	Services  []string // names of the upstreams that there are; nil: nobody knows
	Upstreams []string // that it may use; AnyName is all, nil any
	Secrets   []string // that its program may get; AnyName is all, nil any
	Models    []string // that it may ask; AnyName is all, nil any

	// Rules has the setting that each bound comes from, by its last key: "memory" ->
	// "policy.uploads.memory".
	Rules map[string]string
}

// NoNetwork is the network of what has none.
const NoNetwork = "none"

// DefaultNetwork is the network of builds that have that of the engine.
const DefaultNetwork = "default"

// NetworkOfBuilds returns the network that a build of the unit's image has: NoNetwork or
// DefaultNetwork.
func (b Bounds) NetworkOfBuilds() string {
	if b.BuildNetwork == NoNetwork || !b.allowsBuilds(DefaultNetwork) {
		return NoNetwork
	}
	return DefaultNetwork
}

func (b Bounds) allowsBuilds(network string) bool {
	return b.BuildNetworks == nil || slices.Contains(b.BuildNetworks, network)
}

// AllowingNetwork returns the lines of the server's file that give builds of a unit the
// engine's network.
func (b Bounds) AllowingNetwork(name string) string {
	var lines []string
	if b.BuildNetwork == NoNetwork {
		lines = append(lines, "build_network: "+DefaultNetwork)
	}
	if !b.allowsBuilds(DefaultNetwork) {
		lines = append(lines, "unit."+name+".policy.build_networks: "+list([]string{NoNetwork, DefaultNetwork}))
	}
	return strings.Join(lines, " and ")
}

// AnyRuntime among Bounds.Runtimes allows all isolation runtimes.
const AnyRuntime = "any"

// AnyName among Bounds.Upstreams, Bounds.Secrets or Bounds.Models allows all.
const AnyName = "any"

// Lowered is a wish that a bound cut.
type Lowered struct {
	Setting string // as in agent.yaml: "limits.memory"
	Asked   string
	Holds   string
	Rule    string // the operator's setting
}

// Within returns the bounds with a timeout that is no longer than another one, which the
// operator set by a rule.
func (b Bounds) Within(timeout time.Duration, rule string) Bounds {
	if timeout <= 0 || b.Limits.Timeout > 0 && b.Limits.Timeout <= timeout {
		return b
	}
	b.Limits.Timeout = timeout
	rules := map[string]string{} // others have the given ones, too
	maps.Copy(rules, b.Rules)
	rules["timeout"], b.Rules = rule, rules
	return b
}

// Rule returns the setting that a bound comes from.
func (b Bounds) Rule(key string) string { return b.Rules[key] }
