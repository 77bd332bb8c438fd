package unit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// Govern makes the unit's policy what holds for its runs: what the operator gives takes the
// place of what the unit asks for, and the smaller of that and the bounds counts. What can't
// be made smaller without making another unit of it (a network, a runtime, a writable root)
// is a Refusal.
func (u *Unit) Govern(given Given, bounds Bounds) {
	p := &u.Policy
	p.Limits, p.Given = instead(given.Limits, p.Limits), given.Limits
	p.Bounds = bounds.Within(given.Limits.Timeout, "unit."+u.Name+".timeout")
	p.Retries = cmp.Or(given.Retries, p.Retries)
	p.Grants = grants(p.Grants, given)
	if given.Models != nil {
		p.Models = given.Models
	}
	if given.ReadWrite != nil {
		p.ReadWrite = *given.ReadWrite
	}
	p.Budgets.Tokens = quantity.Smaller(p.Budgets.Tokens, given.Budgets.Tokens)
	p.Budgets.Cost = quantity.Smaller(p.Budgets.Cost, given.Budgets.Cost)
	p.lowerLimits()
	if p.Retries != nil {
		p.Retries = new(p.atMost("retries", *p.Retries, p.Bounds.Retries)) // the unit's own is shared
	}
	if p.Network == "" {
		return
	}
	p.Network = cmp.Or(given.Network, p.Network)
	p.Env = maps.Clone(given.Env)
	p.Needs = append(slices.Clone(p.Needs), given.Needs...)
	if given.Warm != nil {
		p.Warm = *given.Warm
	}
	p.Warm = p.atMost("warm", p.Warm, p.Bounds.Warm)
	p.Reuse = p.atMost("reuse", p.Reuse, p.Bounds.Reuse)
	p.Refusal = u.refusal()
	p.Isolation = cmp.Or(p.Bounds.Runtime, p.Isolation)
}

// PlaceOfLimit says where the limit with a key stands that holds for the unit, or could stand:
// "limits.memory in agent.yaml", or the operator's line.
func (u *Unit) PlaceOfLimit(key string) string {
	given := u.Policy.Given
	own := map[string]bool{
		"memory": given.MemoryBytes > 0, "pids": given.PIDs > 0, "output": given.OutputBytes > 0,
		"cpus": given.CPUs > 0, "log": given.LogBytes > 0,
	}
	if own[key] {
		return "unit." + u.Name + ".limits." + key + " in the server's file"
	}
	return "limits." + key + " in agent.yaml"
}

// instead returns the limits of a, and those of b where a has none.
func instead(a, b capsule.Limits) capsule.Limits {
	return capsule.Limits{
		Timeout: cmp.Or(a.Timeout, b.Timeout), MemoryBytes: cmp.Or(a.MemoryBytes, b.MemoryBytes),
		CPUs: cmp.Or(a.CPUs, b.CPUs), PIDs: cmp.Or(a.PIDs, b.PIDs),
		OutputBytes: cmp.Or(a.OutputBytes, b.OutputBytes), OutputFiles: cmp.Or(a.OutputFiles, b.OutputFiles),
		LogBytes: cmp.Or(a.LogBytes, b.LogBytes),
	}
}

// grants returns the units that a unit may call: those of its tools.yaml and those of the
// operator.
func grants(own []string, given Given) []string {
	var all []string
	for _, name := range slices.Concat(own, given.MayCall) {
		if !slices.Contains(all, name) && !slices.Contains(given.MayNotCall, name) {
			all = append(all, name)
		}
	}
	return all
}

func (p *Policy) lowerLimits() {
	own, most := &p.Limits, p.Bounds.Limits
	lowerTo(p, "limits.timeout", &own.Timeout, most.Timeout, quantity.DurationText)
	lowerTo(p, "limits.memory", &own.MemoryBytes, most.MemoryBytes, quantity.SizeText)
	lowerTo(p, "limits.cpus", &own.CPUs, most.CPUs,
		func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) })
	lowerTo(p, "limits.pids", &own.PIDs, most.PIDs, func(n int64) string { return strconv.FormatInt(n, 10) })
	lowerTo(p, "limits.output", &own.OutputBytes, most.OutputBytes, quantity.SizeText)
}

// lowerTo cuts a limit at its bound; zero is none.
func lowerTo[T int64 | float64 | time.Duration](p *Policy, setting string, own *T, most T, text func(T) string) {
	if most > 0 && *own > most {
		p.lower(setting, text(*own), text(most))
		*own = most
	}
}

// atMost returns a count, or its bound if that is smaller; nil is none.
func (p *Policy) atMost(setting string, own int, most *int) int {
	if most == nil || own <= *most {
		return own
	}
	p.lower(setting, strconv.Itoa(own), strconv.Itoa(*most))
	return *most
}

func (p *Policy) lower(setting, asked, holds string) {
	key := setting[strings.LastIndexByte(setting, '.')+1:]
	p.Lowered = append(p.Lowered, Lowered{Setting: setting, Asked: asked, Holds: holds, Rule: p.Bounds.Rule(key)})
}

// refusal says which wish the bounds don't allow, or returns nil.
func (u *Unit) refusal() *fault.Error {
	p, b := u.Policy, u.Policy.Bounds
	switch {
	case b.Networks != nil && !slices.Contains(b.Networks, p.Network):
		return u.refuse("networks", "the network "+p.Network, list(append(slices.Clone(b.Networks), p.Network)))
	case b.Egress != nil && len(p.Egress.Beyond(b.Egress)) > 0:
		beyond := p.Egress.Beyond(b.Egress)
		return u.refuse("egress", "to reach "+strings.Join(beyond.Strings(), ", "), slices.Concat(b.Egress, beyond).
			String())
	case p.Writable && b.Sealed:
		return u.refuse("read_only", "a writable root file system (read_only: false)", "false")
	case p.Fetches != "" && b.NoFetch:
		return u.refuse("build_fetch", "that its Dockerfile fetches from elsewhere: "+p.Fetches, "true")
	case p.Isolation != "" && b.Runtime == "" && b.Runtimes != nil && !allows(b.Runtimes, p.Isolation):
		return u.refuse("runtimes", "the runtime "+fault.Quote(p.Isolation),
			list(append(slices.Clone(b.Runtimes), p.Isolation)))
	}
	return u.refuseOutside()
}

// refuseOutside says which service, secret or model the bounds don't allow, or returns nil.
func (u *Unit) refuseOutside() *fault.Error {
	p, b := u.Policy, u.Policy.Bounds
	for _, name := range p.Upstreams {
		if b.Services != nil && !slices.Contains(b.Services, name) {
			return fault.New(fault.Forbidden, "%q may not be run here: it asks the upstream %s, which isn't there",
				u.Name, name).
				WithHint("the operator can add it to the server's file, or to that of --upstreams: %s",
					fmt.Sprintf("upstreams.%s: {url: https://…, secret: %s-key}", name, name))
		}
		if b.Upstreams != nil && !allows(b.Upstreams, name) {
			return u.refuse("upstreams", "the upstream "+name, list(append(slices.Clone(b.Upstreams), name)))
		}
	}
	for _, name := range slices.Sorted(maps.Values(p.Secrets)) {
		if b.Secrets != nil && !allows(b.Secrets, name) {
			return u.refuse("secrets", "the secret "+fault.Quote(name)+" in its environment",
				list(append(slices.Clone(b.Secrets), name)))
		}
	}
	beyond := slices.DeleteFunc(slices.Clone(p.Models),
		func(name string) bool { return b.Models == nil || allows(b.Models, name) })
	if len(beyond) > 0 {
		return u.refuse("models", "to ask "+strings.Join(beyond, ", "), list(append(slices.Clone(b.Models), beyond...)))
	}
	return nil
}

// allows reports whether a list has a name, or any.
func allows(names []string, one string) bool {
	return slices.Contains(names, AnyRuntime) || slices.Contains(names, one)
}

func list(items []string) string { return "[" + strings.Join(items, ", ") + "]" }

// RefuseFetch is the refusal of a unit whose build would fetch from elsewhere, or nil where its
// bounds allow that.
func (u *Unit) RefuseFetch(what string) error {
	if !u.Policy.Bounds.NoFetch {
		return nil
	}
	return u.refuse("build_fetch", what, "true")
}

// RefuseImage is the refusal of a unit whose image has so many bytes, or nil where its bounds allow
// that.
func (u *Unit) RefuseImage(bytes int64) error {
	if most := u.Policy.Bounds.ImageBytes; most == 0 || bytes <= most {
		return nil
	}
	megabytes := (bytes + quantity.MiB - 1) / quantity.MiB * quantity.MiB
	return u.refuse("image", "an image of "+quantity.SizeText(megabytes), quantity.SizeText(megabytes))
}

func (u *Unit) refuse(key, what, allowing string) *fault.Error {
	return fault.New(fault.Forbidden, "%q may not be run here: %s doesn't allow it %s", u.Name,
		u.Policy.Bounds.Rule(key), what).
		WithHint("the operator can allow it in the server's file: %s",
			fmt.Sprintf("unit.%s.policy.%s: %s", u.Name, key, allowing))
}
