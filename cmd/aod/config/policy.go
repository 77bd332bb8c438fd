package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// LimitsConfig is what a unit gets instead of the limits of its agent.yaml. Zero fields leave
// those.
type LimitsConfig struct {
	Memory int64 // bytes
	CPUs   float64
	PIDs   int
	Output int64 // bytes
	Log    int64 // bytes
}

// PolicyConfig is the most that units may have.
type PolicyConfig struct {
	Networks []string // "none", "bridge"
	Egress   []string // hosts that may be reached by name, as package egress writes them
	Memory   int64    // bytes
	CPUs     float64
	PIDs     int
	Output   int64 // bytes
	Timeout  time.Duration
	Retries  int
	Runtimes []string // isolation runtimes that may be asked for; AnyRuntime is all
	Runtime  string   // the isolation runtime of all runs; "" forces none
	ReadOnly bool     // the root file system has to be read-only
	Reuse    int
	Warm     int

	BuildNetworks []string // "none", "default"
	BuildFetch    bool     // a Dockerfile may fetch from elsewhere by itself
	Image         int64    // bytes of a unit's image, with what it stands on

	Upstreams []string // that a unit may use; AnyName is all that there are
	Secrets   []string // that its program may get in its environment; AnyName is all
	Models    []string // that it may ask; AnyName is all
}

// AnyRuntime among PolicyConfig.Runtimes allows all.
const AnyRuntime = "any"

// AnyName among PolicyConfig.Upstreams, Secrets and Models allows all.
const AnyName = "any"

const (
	uploadsKey  = "policy.uploads"
	leastMemory = 6 * quantity.MiB // the engine's
	mostPIDs    = 4_194_304        // the kernel's
)

var (
	networkWords = []string{"none", "bridge"}
	buildWords   = []string{"none", "default"}
)

// settings is the table of the block policy: by default, what an agent.yaml can say at most.
func (p *PolicyConfig) settings() []setting {
	return p.table(map[string]string{
		"networks": "none,bridge", "memory": "16TiB", "cpus": "1024", "pids": "4194304", "output": "16TiB",
		"timeout": "168h",
		"retries": "100", "runtimes": AnyRuntime, "read_only": "false", "reuse": "10000", "warm": "1000",
		"build_networks": "none,default", "build_fetch": "false", "image": "16TiB", "upstreams": AnyName,
		"models": AnyName,
	})
}

// uploadSettings is the table of the block policy.uploads.
func (p *PolicyConfig) uploadSettings() []setting {
	return p.table(map[string]string{
		"networks": "none", "memory": "2GiB", "cpus": "2", "pids": "512", "output": "1GiB", "timeout": "1h",
		"retries": "3", "read_only": "true", "reuse": "1", "warm": "0", "build_networks": "none",
		"build_fetch": "false", "image": "4GiB",
	})
}

// own is the table of the block policy of a unit, which has no defaults.
func (p *PolicyConfig) own() []setting { return p.table(nil) }

func (p *PolicyConfig) table(fallback map[string]string) []setting {
	rows := []setting{
		{
			"networks", words(&p.Networks, "networks", networkWords, "a network here"), "",
			"networks that a unit may have",
		},
		{
			"egress", egressRules(&p.Egress), "",
			"hosts that a unit may list in agent.yaml: host, *.host, host:port, http://host",
		},
		{"memory", size{&p.Memory, leastMemory, 16 * quantity.TiB}, "", "the most that limits.memory may be"},
		{"cpus", cores{&p.CPUs}, "", "the most that limits.cpus may be"},
		{"pids", integer{&p.PIDs, 2, mostPIDs}, "", "the most that limits.pids may be"},
		{"output", size{&p.Output, 1, 16 * quantity.TiB}, "", "the most that limits.output may be"},
		{
			"timeout",
			duration{&p.Timeout, time.Millisecond, 7 * day},
			"",
			"the longest that a run may take; max_timeout holds besides",
		},
		{"retries", integer{&p.Retries, 0, 100}, "", "the most further attempts after an error that may pass"},
		{"runtimes", runtimes(&p.Runtimes), "", "isolation runtimes that a unit may ask for; any is all"},
		{"runtime", runtimeName(&p.Runtime), "", "the isolation runtime that all units have, whatever they ask for"},
		{
			"read_only",
			boolean{&p.ReadOnly},
			"",
			"refuse units with read_only: false",
		},
		{"reuse", integer{&p.Reuse, 1, 10_000}, "", "the most runs that one container may serve"},
		{"warm", integer{&p.Warm, 0, 1_000}, "", "the most containers that may wait for a unit that isn't called"},
		{
			"build_networks", words(&p.BuildNetworks, "networks", buildWords, "a network of builds"), "",
			"networks of builds, of which build_network chooses",
		},
		{
			"build_fetch",
			boolean{&p.BuildFetch},
			"",
			"let a Dockerfile fetch past its network: ADD of an address, FROM and COPY --from of an image whose " +
				"registry is one, each also by a trigger of its base image, and a # syntax other than " +
				"docker/dockerfile",
		},
		{
			"image",
			size{&p.Image, 1, 16 * quantity.TiB},
			"",
			"the largest image of a unit, with its base image; a larger one is removed when it is built",
		},
		{"upstreams", upstreamNames(&p.Upstreams), "", "upstreams that a unit may use; any is all that there are"},
		{
			"secrets", secretNames(&p.Secrets), "",
			"secrets that a unit's program may get in its environment; any is all of them",
		},
		{"models", modelNames(&p.Models), "", "models that a unit may ask; any is all that there are"},
	}
	for i := range rows {
		rows[i].fallback = fallback[rows[i].key]
	}
	return rows
}

// PolicyFor returns the policy in force for a unit, and the setting that each of its keys
// comes from. Of an upload the stricter of policy and policy.uploads counts. What the block of
// the unit sets takes their place; max_timeout holds in any case.
func (c *Config) PolicyFor(name string, uploaded bool) (PolicyConfig, map[string]string) {
	p, from := c.Policy, map[string]string{}
	for _, s := range p.settings() {
		from[s.key] = join("policy", s.key)
	}
	if uploaded {
		p = strictest(c.Policy, c.Uploads)
		for i, s := range p.settings() {
			if s.into.String() != c.Policy.settings()[i].into.String() {
				from[s.key] = join(uploadsKey, s.key)
			}
		}
	}
	c.replace(&p, from, name)
	if c.MaxTimeout < p.Timeout {
		p.Timeout, from["timeout"] = c.MaxTimeout, "max_timeout"
	}
	return p, from
}

// replace puts what the block of a unit sets in the place of the server's policy.
func (c *Config) replace(p *PolicyConfig, from map[string]string, name string) {
	under := join(unitKey(name), "policy")
	u := c.Unit[name]
	own := u.Policy.own()
	for i, s := range p.settings() {
		if _, set := c.sources[join(under, s.key)]; !set {
			continue
		}
		if err := s.into.set(own[i].into.String()); err != nil { // it was read from such a text
			panic("config: " + s.key + ": " + err.Error())
		}
		from[s.key] = join(under, s.key)
	}
}

func strictest(a, b PolicyConfig) PolicyConfig {
	return PolicyConfig{
		Networks: both(a.Networks, b.Networks, ""),
		Egress:   coveredBy(a.Egress, b.Egress),
		Memory:   min(a.Memory, b.Memory),
		CPUs:     min(a.CPUs, b.CPUs),
		PIDs:     min(a.PIDs, b.PIDs),
		Output:   min(a.Output, b.Output),
		Timeout:  min(a.Timeout, b.Timeout),
		Retries:  min(a.Retries, b.Retries),
		Runtimes: both(a.Runtimes, b.Runtimes, AnyRuntime),
		Runtime:  cmp.Or(b.Runtime, a.Runtime),
		ReadOnly: a.ReadOnly || b.ReadOnly,
		Reuse:    min(a.Reuse, b.Reuse),
		Warm:     min(a.Warm, b.Warm),

		BuildNetworks: both(a.BuildNetworks, b.BuildNetworks, ""),
		BuildFetch:    a.BuildFetch && b.BuildFetch,
		Image:         min(a.Image, b.Image),

		Upstreams: both(a.Upstreams, b.Upstreams, AnyName),
		Secrets:   both(a.Secrets, b.Secrets, AnyName),
		Models:    both(a.Models, b.Models, AnyName),
	}
}

// both returns what two lists have in common. One with the word for all has everything.
func both(a, b []string, all string) []string {
	switch {
	case slices.Contains(a, all):
		return b
	case slices.Contains(b, all):
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), func(item string) bool { return !slices.Contains(b, item) })
}

// coveredBy returns the hosts of each of two lists that the other one allows as well.
func coveredBy(a, b []string) []string {
	left, right := rulesOf(a), rulesOf(b)
	within := func(list, most outside.List) outside.List {
		beyond := list.Beyond(most)
		return slices.DeleteFunc(slices.Clone(list), func(r outside.Rule) bool { return slices.Contains(beyond, r) })
	}
	var all []string
	for _, r := range append(within(left, right), within(right, left)...) {
		if text := r.String(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// checkPolicy reports what a unit is given and the policy keeps from all units.
func (l *loader) checkPolicy(name string, u UnitConfig) {
	unit := unitKey(name)
	p, from := l.config.PolicyFor(name, false)
	if u.Network != "" && !slices.Contains(p.Networks, u.Network) {
		l.contradiction(unit+".network", from["networks"],
			fmt.Sprintf("%s doesn't allow the network %s", from["networks"], u.Network),
			fmt.Sprintf("leave it out, or allow it with %s.policy.networks", unit))
	}
	for _, model := range u.Models {
		if !slices.Contains(p.Models, AnyName) && !slices.Contains(p.Models, model) {
			l.contradiction(unit+".models", from["models"],
				fmt.Sprintf("%s doesn't allow the model %s", from["models"], model),
				fmt.Sprintf("leave it out, or allow it with %s.policy.models", unit))
		}
	}
	if own := u.Policy.Timeout; own > l.config.MaxTimeout {
		l.contradiction(unit+".policy.timeout", "max_timeout",
			fmt.Sprintf("it is longer than max_timeout, %s", quantity.DurationText(l.config.MaxTimeout)),
			"shorten it, or raise max_timeout")
	}
}
