package validate

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// flowFindings holds a flow against the contracts of the units that it names. It warns of each
// that is neither beside it nor in a directory of --units: where it will run there may be one.
func flowFindings(env *cli.Env, c *capsule.Capsule) (findings []fault.Finding) {
	if c.Flow == nil {
		return nil
	}
	places := append([]string{filepath.Dir(c.Dir)}, env.Units...)
	contracts := map[string]*contract.Contract{c.Name: c.Contract}
	for _, name := range c.Flow.UnitNames() {
		if _, known := contracts[name]; known {
			continue
		}
		found, err := lookup.Callee(env, places, name)
		if fault.Is(err, fault.NotFound) {
			findings = append(findings, fault.Finding{
				File: flow.FileName, Warning: true, Message: fmt.Sprintf("there is no unit %q beside this one", name),
				Hint: grantHint(places, name),
			})
		}
		contracts[name] = nil
		if err == nil {
			contracts[name] = found.Contract
		}
	}
	units := func(name string) (*contract.Contract, bool) { return contracts[name], true }
	return append(findings, c.Flow.Check(flow.Terms{
		Units: units, Contract: c.Contract, Timeout: c.Agent.Limits.Timeout, Calls: c.Agent.Budgets.Calls,
		Name: c.Name, Recursion: c.Agent.Recursion, Callees: calleesIn(env, places),
	})...)
}

// calleesIn finds the units that others in these directories may call. Each is read once.
func calleesIn(env *cli.Env, places []string) func(name string) []string {
	known := map[string][]string{}
	return func(name string) []string {
		names, read := known[name]
		if read {
			return names
		}
		if found, err := lookup.Callee(env, places, name); err == nil {
			names = unit.Of(found).Policy.Grants
		}
		known[name] = names
		return names
	}
}

// boundsText says what a run of a flow takes.
func boundsText(b flow.Bounds) string {
	if b.MostCalls >= math.MaxInt32 {
		return fmt.Sprintf("from %s on, %d deep", ui.Plural(b.LeastCalls, "call"), b.Depth)
	}
	return fmt.Sprintf("at most %s, %d deep", ui.Plural(b.MostCalls, "call"), b.Depth)
}

// missingGrants warns of each unit that a capsule may call and that is neither beside it nor
// in a directory of --units: where it will run there may be one.
func missingGrants(env *cli.Env, c *capsule.Capsule) []fault.Finding {
	places := append([]string{filepath.Dir(c.Dir)}, env.Units...)
	var findings []fault.Finding
	for i, tool := range c.Tools {
		if tool.Capsule == "" || tool.Capsule == c.Name {
			continue
		}
		if _, err := lookup.Callee(env, places, tool.Capsule); !fault.Is(err, fault.NotFound) {
			continue // there is one, though it may have problems of its own
		}
		findings = append(findings, fault.Finding{
			File: "tools.yaml", Pointer: fmt.Sprintf("/%d/capsule", i), Warning: true,
			Message: fmt.Sprintf("there is no unit %q beside this one", tool.Capsule),
			Hint:    grantHint(places, tool.Capsule),
		})
	}
	return findings
}

func grantHint(places []string, name string) string {
	var known []string
	for _, place := range places {
		known = append(known, lookup.Names(place, true)...)
	}
	return fault.Suggest(name, known, "if it is elsewhere, name the directory above it with --units")
}
