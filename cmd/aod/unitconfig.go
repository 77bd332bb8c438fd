package main

import (
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/config"
)

// givenFlags say what a command's user gives the unit that it runs, as an operator does in
// the server's file.
type givenFlags struct {
	file    string
	mayCall []string

	upstreams string // a file of them
}

func (f *givenFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "unit-config", "",
		"a YAML file with what the unit gets: env, network, may_call, timeout, limits")
	fs.StringVar(&f.upstreams, "upstreams", "", "a YAML file with upstreams that it may ask (default: AOD_UPSTREAMS)")
	fs.StringArrayVar(&f.mayCall, "may-call", nil,
		"a unit that it may call beside those of its tools.yaml; may be repeated")
}

// given reads the flags. The error is an Input fault.
func (f *givenFlags) given() (given unit.Given, err error) {
	if f.file != "" {
		u, err := config.LoadUnit(f.file)
		if err != nil {
			return given, err
		}
		given = givenOf(u)
	}
	for _, name := range f.mayCall {
		if err := api.CheckUnitName(name); err != nil {
			return given, fault.Wrap(fault.Input, err, "--may-call takes the name of a unit: %s", fault.Public(err).
				Msg).
				WithHint("%s", fault.Public(err).Hint)
		}
		given.MayCall = append(given.MayCall, name)
	}
	return given, nil
}

// unit returns the unit of a capsule with what the flags give it.
func (f *givenFlags) unit(c *capsule.Capsule) (*unit.Unit, error) {
	given, err := f.given()
	if err != nil {
		return nil, err
	}
	table, err := readUpstreams(f.upstreams)
	if err != nil {
		return nil, err
	}
	u := unit.Of(c)
	u.Govern(given, unit.Bounds{Services: nonNil(slices.Collect(maps.Keys(table)))})
	return u, nil
}

// refuseOnServer returns a fault if a flag is set that only means something here.
func (f *givenFlags) refuseOnServer() error {
	if f.file == "" && f.upstreams == "" && len(f.mayCall) == 0 {
		return nil
	}
	return fault.New(fault.Input, "--unit-config, --upstreams and --may-call are for runs on this machine").
		WithHint("a server's operator writes the same below unit.NAME in the server's file, see docs/configuration.md")
}

// givenOf converts what the server's file says of a unit.
func givenOf(u config.UnitConfig) unit.Given {
	given := unit.Given{
		Env: u.Env, Network: u.Network, MayCall: u.MayCall, MayNotCall: u.MayNotCall,
		Models: nonEmpty(u.Models), Budgets: capsule.Budgets{Tokens: int64(u.ModelTokens), Cost: u.ModelCost},
		Limits: capsule.Limits{
			Timeout: u.Timeout, MemoryBytes: u.Limits.Memory, CPUs: u.Limits.CPUs, PIDs: int64(u.Limits.PIDs),
			OutputBytes: u.Limits.Output, LogBytes: u.Limits.Log,
		},
	}
	if u.Retries != config.UnitsOwn {
		given.Retries = &u.Retries
	}
	if u.Warm != config.UnitsOwn {
		given.Warm = &u.Warm
	}
	if u.Access != "" {
		given.ReadWrite = new(u.Access == config.ReadWrite)
	}
	return given
}

// nonEmpty returns a list, and nil for an empty one.
func nonEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// boundsFor returns the bounds that the server's policy sets a unit.
func boundsFor(c *config.Config) func(name string, uploaded bool) unit.Bounds {
	return func(name string, uploaded bool) unit.Bounds {
		p, from := c.PolicyFor(name, uploaded)
		return unit.Bounds{
			Limits: capsule.Limits{
				Timeout: p.Timeout, MemoryBytes: p.Memory, CPUs: p.CPUs, PIDs: int64(p.PIDs), OutputBytes: p.Output,
			},
			Retries: &p.Retries, Warm: &p.Warm, Reuse: &p.Reuse,
			Networks: nonNil(p.Networks), Egress: p.EgressRules(), Runtimes: nonNil(p.Runtimes), Runtime: p.Runtime,
			Sealed:       p.ReadOnly,
			BuildNetwork: c.BuildNetwork, BuildNetworks: nonNil(p.BuildNetworks), NoFetch: !p.BuildFetch,
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
