package config

import (
	"maps"
	"slices"
	"time"
)

// Config is what is in force: every field is set and checked, every path absolute.
type Config struct {
	Listen    string   // host:port of the HTTP API
	Data      string   // directory of runs, their files and the record
	Units     []string // directories in which units are found
	TokenFile string   // holds the token that every request must show
	Secrets   string   // directory of the secrets that units name; it need not be there
	NoAuth    bool     // no token is asked for; only with a loopback Listen
	Hosts     []string // further names that a Host header may have; lower case, without ports
	Origins   []string // web origins that may call; lower case, without default ports

	Concurrency int           // runs at once; at least 1
	Starts      int           // containers that start at once; at least 1
	Queue       int           // waiting runs of one unit; at least 1
	QueueWait   time.Duration // the longest that a run waits
	Retries     int           // further attempts after an error that may pass
	RetryDelay  time.Duration // before the first of them; it doubles
	MaxTimeout  time.Duration // the longest timeout that a run may ask for

	Pool       int           // containers that wait for runs; 0 is none
	PoolMemory int64         // bytes that they may take
	PoolIdle   time.Duration // how long after its last call a unit still has some

	HandoffDepth int // how deep calls may nest
	HandoffCalls int // how many there may be below one run

	UploadLimit   int64         // bytes of one request's body
	PayloadLimit  int64         // bytes of one input or output
	MinFreeDisk   int64         // bytes; below them new runs are refused
	RetentionAge  time.Duration // how long ended runs are kept; 0 is for ever
	RetentionSize int64         // bytes of all kept runs; 0 is no bound
	SweepInterval time.Duration // between two clean-ups

	Grace     time.Duration // what running runs get at SIGTERM
	Drain     bool          // wait for all of them instead
	FileRoots []string      // directories from which a request may take files

	LogFormat string // text or json
	LogLevel  string // debug, info, warn or error

	Agents AgentsConfig // of the agent HTTP contract

	Unit map[string]UnitConfig // by name; ForUnit answers for the others too

	sources map[string]place // of each key that isn't at its default
}

// UnitConfig is what is in force for one unit.
type UnitConfig struct {
	Concurrency int           // runs at once; 0 is no bound of the unit's own
	Queue       int           // waiting runs
	Retries     int           // further attempts after an error that may pass; UnitsOwn is what it says itself
	Access      string        // ReadOnly or ReadWrite
	MayCall     []string      // units beside those of its tools.yaml
	MayNotCall  []string      // units, whatever its tools.yaml says
	Timeout     time.Duration // of its runs; 0 is what the unit itself says
	Warm        int           // containers that wait for its runs; UnitsOwn is what it says itself
	ModelPath   string        // of an Agentic Unit; "" is none. It need not be there
	MaxStdin    int64         // bytes that an Agentic Unit gets on stdin

	Require   []string // of requests of the agent HTTP contract for it, beside Agents.Require
	Modes     []string // that are taken of those of Agents.Modes; none: all of them
	RiskTiers []string // likewise
}

// UnitsOwn stands for what a unit's agent.yaml asks for, or else the server.
const UnitsOwn = -1

// What the runs of a unit do to the world outside their sandboxes.
const (
	ReadOnly  = "read-only"  // they may run side by side
	ReadWrite = "read-write" // they run one at a time
)

// Value is one setting as a person reads it.
type Value struct {
	Key    string `json:"key"`    // as in the file; those of a block are agents.KEY and unit.NAME.KEY
	Value  string `json:"value"`  // as an environment variable would hold it; "" for an empty list
	Source string `json:"source"` // "default", "flag --listen", "environment AOD_LISTEN", "aod.yaml:12"
}

// ForUnit returns what is in force for a unit, whether or not it was configured.
func (c *Config) ForUnit(name string) UnitConfig {
	if u, ok := c.Unit[name]; ok {
		return u
	}
	var u UnitConfig
	setDefaults(u.settings())
	u.Queue = c.Queue
	return u
}

// Values lists what is in force in the table's order, then block by block.
func (c *Config) Values() []Value {
	values := c.valuesOf("", c.settings())
	values = append(values, c.valuesOf("agents", c.Agents.settings())...)
	for _, name := range slices.Sorted(maps.Keys(c.Unit)) {
		u := c.Unit[name]
		values = append(values, c.valuesOf(unitKey(name), u.settings())...)
	}
	return values
}

func (c *Config) valuesOf(under string, rows []setting) []Value {
	values := make([]Value, 0, len(rows))
	for _, s := range rows {
		key := join(under, s.key)
		values = append(values, Value{Key: key, Value: s.into.String(), Source: c.sources[key].String()})
	}
	return values
}

// unitKey is where the settings of one unit stand.
func unitKey(name string) string { return join("unit", name) }

// join writes a key with what it stands under: "unit.csv-report.queue".
func join(under, key string) string {
	if under == "" {
		return key
	}
	return under + "." + key
}
