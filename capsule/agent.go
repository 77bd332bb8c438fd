package capsule

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/schemas"
)

const (
	agentFile = "agent.yaml"

	durationHint = "write a duration with its unit, such as 30s, 5m or 1h30m"
	sizeHint     = "write a size, such as 512MiB or 2GiB"

	maxTimeout = 168 * time.Hour // of limits.timeout, where its kind says nothing else
)

var agentShape = sync.OnceValue(func() shape { return mustShape(parseSchema(schemas.Agent()), true) })

// agentYAML is agent.yaml as it stands there: what has a unit is not yet read.
type agentYAML struct {
	Agent
	wrappedYAML
	Name        *string     `json:"name"`
	Kind        string      `json:"kind"`
	Remote      *remoteYAML `json:"remote"`
	MCP         *mcpYAML    `json:"mcp"`
	Version     string      `json:"version"`
	Description string      `json:"description"`
	Limits      limitsYAML  `json:"limits"`
	Egress      []string    `json:"egress"`
	ReadOnly    *bool       `json:"read_only"`
	Cache       any         `json:"cache"`
	ModelCache  any         `json:"model_cache"`
}

type limitsYAML struct {
	Timeout any     `json:"timeout"`
	Memory  any     `json:"memory"`
	CPUs    float64 `json:"cpus"`
	PIDs    int64   `json:"pids"`
	Output  any     `json:"output"`
	Log     any     `json:"log"`
}

// notYet are the settings that are read and checked, and that nothing heeds so far.
var notYet = []string{"cache"}

// fillAgent reads the values of agent.yaml, and returns its kind and what is wrong.
func fillAgent(c *Capsule, object map[string]any) (Kind, []fault.Finding) {
	file := decoded[agentYAML](object)
	var u units
	c.Version, c.Description = file.Version, file.Description
	kind, ok := kinds[file.Kind]
	if !ok {
		kind = kinds[KindCapsule]
	}
	c.Kind = kind.Name
	c.Agent = file.agent(&u, cmp.Or(kind.longest, maxTimeout))
	c.Name = u.name(file.Name, object, filepath.Base(c.Dir))
	if kind.settings != nil {
		kind.settings(&u, file, object)
	}
	u.checkOutside(file, kind)
	c.Remote = file.Remote.remote(c.Name)
	if c.Kind == KindMCP {
		c.MCP = file.MCP.mcp(&u)
	}
	if c.Kind == KindAgent {
		c.Wrapped = file.wrapped(&u, file.Upstreams)
	}
	return kind, append(agentShape().check(object, u.findings), unused(c, kind, object)...)
}

// unused warns of what is set and heeded by nothing. Where there is no container, all that
// makes no sense is refused.
func unused(c *Capsule, kind Kind, object map[string]any) (warnings []fault.Finding) {
	for _, key := range notYet {
		_, senseless := notElsewhere["/"+key]
		if _, set := object[key]; set && (!senseless || !kind.elsewhere) {
			warnings = append(warnings, fault.Finding{
				Pointer: "/" + key, Warning: true,
				Message: key + " is read, but this version of AOD doesn't act on it yet",
				Hint:    "runs go on as if it weren't there",
			})
		}
	}
	if len(c.Agent.Egress) > 0 && c.Agent.Network != "none" && !kind.elsewhere {
		warnings = append(warnings, fault.Finding{
			Pointer: "/egress", Warning: true,
			Message: "egress bounds nothing beside network: " + c.Agent.Network + ", which reaches everything",
			Hint:    "leave network out, and only the hosts of egress are reached",
		})
	}
	if c.Agent.Warm > 0 && c.Agent.Runtime != "" && !kind.elsewhere {
		warnings = append(warnings, fault.Finding{
			Pointer: "/warm", Warning: true,
			Message: "warm has no effect beside runtime: no container waits under an isolation runtime",
			Hint:    "leave one of the two out",
		})
	}
	return append(warnings, reuseFindings(c, kind)...)
}

// reuseFindings warn of a reuse that never comes about.
func reuseFindings(c *Capsule, kind Kind) []fault.Finding {
	why := kind.noReuse
	switch {
	case c.Agent.Reuse <= 1 || kind.elsewhere: // refused where there is no container
		return nil
	case why != "":
	case len(c.Agent.Secrets) > 0:
		why = "a program gets its secrets when it starts, with its run"
	case c.Agent.Runtime != "":
		why = "containers with an isolation runtime are never started ahead of their run"
	default:
		return nil
	}
	return []fault.Finding{{
		Pointer: "/reuse", Warning: true, Message: "reuse has no effect here: " + why,
		Hint: "each run has a container of its own; leave it out",
	}}
}

// decoded takes over what has the right type. What hasn't is left out here and
// reported by the schema.
func decoded[T any](object map[string]any) (file T) {
	raw, err := json.Marshal(object)
	if err == nil {
		_ = json.Unmarshal(raw, &file)
	}
	return file
}

func (f agentYAML) agent(u *units, longest time.Duration) Agent {
	a := f.Agent
	a.Limits = f.Limits.limits(u, longest)
	a.ModelCache = u.duration("/model_cache", f.ModelCache, time.Second, 168*time.Hour)
	a.Cache = u.duration("/cache", f.Cache, time.Second, 365*24*time.Hour)
	a.Network = cmp.Or(f.Network, "none")
	a.Egress = u.hosts("/egress", f.Egress)
	a.ReadOnly = f.ReadOnly == nil || *f.ReadOnly
	return a
}

func (f limitsYAML) limits(u *units, longest time.Duration) Limits {
	l := Limits{
		Timeout:     u.duration("/limits/timeout", f.Timeout, time.Millisecond, longest),
		MemoryBytes: u.size("/limits/memory", f.Memory, 6*quantity.MiB, 16*quantity.TiB),
		CPUs:        f.CPUs,
		PIDs:        f.PIDs,
		LogBytes:    u.size("/limits/log", f.Log, 1, quantity.GiB),
	}
	output, parts := f.Output.(map[string]any)
	if !parts {
		l.OutputBytes = u.size("/limits/output", f.Output, 1, 16*quantity.TiB)
		return l
	}
	l.OutputBytes = u.size("/limits/output/size", output["size"], 1, 16*quantity.TiB)
	if n, ok := output["files"].(float64); ok {
		l.OutputFiles = int(n)
	}
	return l
}

// nameOr makes a usable name of any text.
func nameOr(text string) string {
	if s := api.SuggestUnitName(text); s != "" {
		return s
	}
	return "my-capsule"
}
