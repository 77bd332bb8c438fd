package main

import (
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/bundled"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/config"
)

// boundsFor returns the bounds that the server's policy sets a unit.
func boundsFor(c *config.Config) func(name string, uploaded bool) unit.Bounds {
	return func(name string, uploaded bool) unit.Bounds {
		p, from := c.PolicyFor(name, uploaded)
		builds := c.BuildNetwork
		if name == bundled.Code && len(c.Packages) > 0 { // the operator named what its steps fetch
			builds = unit.DefaultNetwork
		}
		return unit.Bounds{
			Limits: capsule.Limits{
				Timeout: p.Timeout, MemoryBytes: p.Memory, CPUs: p.CPUs, PIDs: int64(p.PIDs), OutputBytes: p.Output,
			},
			Retries: &p.Retries, Warm: &p.Warm, Reuse: &p.Reuse,
			Networks: nonNil(p.Networks), Egress: p.EgressRules(), Runtimes: nonNil(p.Runtimes), Runtime: p.Runtime,
			Sealed:       p.ReadOnly,
			BuildNetwork: builds, BuildNetworks: nonNil(p.BuildNetworks), NoFetch: !p.BuildFetch,
			ImageBytes: p.Image,
			Services:   nonNil(slices.Collect(maps.Keys(c.Upstreams))), Upstreams: nonNil(p.Upstreams),
			Secrets: nonNil(p.Secrets), Models: nonNil(p.Models),
			Rules: from,
		}
	}
}

// nonNil makes a list that allows nothing of none.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
