package config

import (
	"maps"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/upstream"
)

// Config holds the settings in force: every field is set and checked, every path absolute.
type Config struct {
	Listen    string   // host:port of the HTTP API
	TLS       string   // TLSOff, TLSSelf or TLSFiles
	Data      string   // directory of runs, their files and the record
	Units     []string // directories of the units
	Code      bool     // there is the unit that runs programs
	Packages  []string // of Debian, that its image has
	TokenFile string   // file with the token that every request must carry
	Secrets   string   // directory of the secrets that units name; may be missing
	NoAuth    bool     // no token is required; only with a loopback Listen
	Hosts     []string // further names that a Host header may have; lower case, without ports
	Origins   []string // web origins that may call; lower case, without default ports

	Concurrency int           // runs at once; at least 1
	Starts      int           // containers that start at once; at least 1
	Memory      int64         // bytes that all runs may take; 0 is a part of the machine's
	Queue       int           // waiting runs of one unit; at least 1
	QueueWait   time.Duration // longest wait of a run
	Retries     int           // further attempts after a transient error
	RetryDelay  time.Duration // before the first retry; doubles each time
	MaxTimeout  time.Duration // longest timeout that a run may request

	Builds       int           // images that are built at once; 0 is half of the CPUs
	BuildTimeout time.Duration // of one build
	BuildMemory  int64         // bytes of each container of a build; 0 is no bound
	BuildCPUs    float64       // of each container of a build
	BuildNetwork string        // "none" or "default"

	Pool       int           // containers that wait for runs; 0 is none
	PoolMemory int64         // bytes that those containers may take
	PoolIdle   time.Duration // how long a unit keeps some after its last call

	SandboxUIDs     UIDRange // of sandboxes' users, where the server is root
	AllowUnconfined bool     // serve with an engine that has no seccomp

	LocalSandboxes bool          // units with containers run on this machine, too, beside workers
	Labels         []string      // what units may need of this machine
	Swarm          string        // the file with which the nodes of the engine's Swarm join; "": none do
	WorkerGrace    time.Duration // how long a worker may be away before its runs count as lost

	EgressPrivate []string // hosts at addresses that aren't public; see EgressExceptions

	Sessions    int // containers that live on between the turns of sessions
	MCPSessions int // sessions of MCP that a client has at once

	HandoffDepth int // nesting depth of calls
	HandoffCalls int // calls below one run
	FlowCalls    int // calls below a flow

	Providers        map[string]catalog.Provider // of models
	Models           map[string]catalog.Model    // that units can ask for
	ModelTokens      int                         // of a run with all that it calls; 0 is no bound
	ModelCost        api.Cost                    // likewise
	ModelTranscripts bool                        // what runs ask models is kept

	Upstreams upstream.Table // services whose keys stay outside, by name

	UploadLimit   int64         // bytes of one request's body
	PayloadLimit  int64         // bytes of one input or output
	RequestMemory int64         // bytes that all requests together hold in memory
	MinFreeDisk   int64         // bytes; with less free, nothing new begins
	RetentionAge  time.Duration // how long ended runs are kept; 0 is for ever
	AuditAge      time.Duration // how long the audit keeps who did what
	RetentionSize int64         // bytes of all kept runs; 0 is no bound
	SweepInterval time.Duration // between two clean-ups

	Grace     time.Duration // time for running runs at SIGTERM
	Drain     bool          // wait for all running runs instead
	FileRoots []string      // directories that a request may take files from

	ExecuteErrors string // of POST /execute: InBody or AsProblem

	LogFormat string // text or json
	LogLevel  string // debug, info, warn or error

	Certificate CertificateConfig // with TLSFiles

	Agents AgentsConfig // of the agent HTTP contract
	A2A    A2AConfig    // of the Agent2Agent protocol
	OIDC   OIDCConfig   // of people whom an issuer signs in

	Webhooks WebhooksConfig
	Hooks    map[string]HookConfig // by name

	Policy  PolicyConfig // of all units
	Uploads PolicyConfig // of those that were uploaded, beside Policy; see PolicyFor

	Unit   map[string]UnitConfig   // by name; ForUnit covers the others too
	Teams  map[string]TeamConfig   // by name
	Worker map[string]WorkerConfig // by name
	Tokens map[string]Quota        // of a token by its name

	sources map[string]place // of each key that differs from its default
}

// Values of Config.ExecuteErrors.
const (
	InBody    = "standard" // 200, with the cause in the field error
	AsProblem = "problem"  // a status, with application/problem+json
)

// UnitConfig holds the settings in force for one unit.
type UnitConfig struct {
	Concurrency int           // runs at once; 0 is no bound of the unit's own
	Queue       int           // waiting runs; 0 is the unit's own number, else the server's
	QueueWait   time.Duration // longest wait of a run; 0 likewise
	Retries     int           // further attempts after a transient error; UnitsOwn is the unit's own number
	Access      string        // ReadOnly or ReadWrite; "": as the unit says
	Needs       []string      // labels of a machine, in addition to its agent.yaml
	MayCall     []string      // units, in addition to its tools.yaml
	MayNotCall  []string      // units, even if its tools.yaml lists them
	Teams       []string      // that may run it; none: of a directory all, of an upload its own
	Timeout     time.Duration // the longest of its runs; 0 is the unit's own
	Warm        int           // containers that wait for its runs; UnitsOwn is the unit's own number
	Models      []string      // that it may ask for; none: those of its agent.yaml
	ModelTokens int           // of a run with all that it calls; 0 is the unit's own
	ModelCost   api.Cost      // likewise
	ModelPath   string        // of an Agentic Unit; "" is none; may be missing
	MaxStdin    int64         // most bytes that an Agentic Unit gets on stdin

	Env     map[string]string // of its program, beside what AOD tells it
	Network string            // "none" or "bridge"; "" is the unit's own
	Limits  LimitsConfig
	Policy  PolicyConfig // as far as the file sets it; see PolicyFor
	A2A     UnitA2A

	Require   []string // fields of its agent HTTP requests, in addition to Agents.Require
	Modes     []string // accepted ones of Agents.Modes; none: all of them
	RiskTiers []string // likewise
	Refuse200 bool     // such a request with inputs that it refuses is answered with 200, not with 422
}

// UnitsOwn stands for the value of a unit's agent.yaml, or else the server's.
const UnitsOwn = -1

// How the runs of a unit affect the world outside their sandboxes.
const (
	ReadOnly  = "read-only"  // they may run side by side
	ReadWrite = "read-write" // they run one at a time
)

// Value is one setting in printed form.
type Value struct {
	Key    string `json:"key"`    // as in the file; in a block: agents.KEY and unit.NAME.KEY
	Value  string `json:"value"`  // as an environment variable would hold it; "" for an empty list
	Source string `json:"source"` // "default", "flag --listen", "environment AOD_LISTEN", "aod.yaml:12"
}

// ForUnit returns the settings in force for a unit, configured or not.
func (c *Config) ForUnit(name string) UnitConfig {
	if u, ok := c.Unit[name]; ok {
		return u
	}
	var u UnitConfig
	setDefaults(u.settings())
	setDefaults(u.A2A.settings())
	return u
}

// Catalog returns what a gateway may ask.
func (c *Config) Catalog() catalog.Catalog {
	return catalog.Catalog{Providers: c.Providers, Models: c.Models}
}

// Values lists the settings in force in the table's order, then block by block.
func (c *Config) Values() []Value {
	values := c.valuesOf("", c.settings())
	values = append(values, c.given(c.valuesOf("tls", c.Certificate.settings()))...)
	values = append(values, c.valuesOf("agents", c.Agents.settings())...)
	values = append(values, c.valuesOf("a2a", c.A2A.settings())...)
	values = append(values, c.given(c.valuesOf(oidcKey, c.OIDC.settings()))...)
	values = append(values, c.given(c.valuesOf(join(oidcKey, oidcScopeKey), c.OIDC.scopes()))...)
	values = append(values, c.valuesOf(webhooksKey, c.Webhooks.settings())...)
	values = append(values, c.valuesOf("policy", c.Policy.settings())...)
	values = append(values, c.valuesOf(uploadsKey, c.Uploads.uploadSettings())...)
	for _, name := range slices.Sorted(maps.Keys(c.Teams)) {
		t := c.Teams[name]
		values = append(values, c.valuesOf(join(teamsKey, name), t.settings())...)
		values = append(values, c.spending(join(teamsKey, name), &t.Spending)...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tokens)) {
		q := c.Tokens[name]
		values = append(values, c.given(c.valuesOf(join(tokensKey, name), q.quota()))...)
		values = append(values, c.spending(join(tokensKey, name), &q.Spending)...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Hooks)) {
		h := c.Hooks[name]
		values = append(values, c.valuesOf(join(hooksKey, name), h.settings())...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Worker)) {
		w := c.Worker[name]
		values = append(values, c.valuesOf(join(workerKey, name), w.settings())...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Unit)) {
		u := c.Unit[name]
		values = append(values, c.valuesOf(unitKey(name), u.settings())...)
		values = append(values, c.given(c.valuesOf(join(unitKey(name), "limits"), u.Limits.settings()))...)
		values = append(values, c.given(c.valuesOf(join(unitKey(name), "policy"), u.Policy.own()))...)
		values = append(values, c.given(c.valuesOf(join(unitKey(name), "a2a"), u.A2A.settings()))...)
	}
	return values
}

// given leaves the values out that nobody has set.
func (c *Config) given(values []Value) []Value {
	return slices.DeleteFunc(values, func(v Value) bool { return c.sources[v.Key] == place{} })
}

func (c *Config) valuesOf(under string, rows []setting) []Value {
	values := make([]Value, 0, len(rows))
	for _, s := range rows {
		key := join(under, s.key)
		values = append(values, Value{Key: key, Value: s.into.String(), Source: c.sources[key].String()})
	}
	return values
}

// unitKey is the key of the block of one unit.
func unitKey(name string) string { return join("unit", name) }

// join writes a key with the key of its block: "unit.csv-report.queue".
func join(under, key string) string {
	if under == "" {
		return key
	}
	return under + "." + key
}
