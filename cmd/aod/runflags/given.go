package runflags

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// Given is what a command's user gives the unit that it runs, as an operator does in
// the server's file.
type Given struct {
	File    string
	MayCall []string
}

// Register adds the flags to a command.
func (f *Given) Register(fs *pflag.FlagSet) {
	fs.StringVar(&f.File, "unit-config", "",
		"a YAML file with what the unit gets: env, network, may_call, timeout, limits")
	fs.StringArrayVar(&f.MayCall, "may-call", nil,
		"a unit that it may call beside those of its tools.yaml; may be repeated")
}

// given reads the flags. The error is an Input fault.
func (f *Given) given() (given unit.Given, err error) {
	if f.File != "" {
		u, err := config.LoadUnit(f.File)
		if err != nil {
			return given, err
		}
		given = GivenOf(u)
	}
	for _, name := range f.MayCall {
		if err := api.CheckUnitName(name); err != nil {
			return given, fault.Wrap(fault.Input, err, "--may-call takes the name of a unit: %s", fault.Public(err).
				Msg).
				WithHint("%s", fault.Public(err).Hint)
		}
		given.MayCall = append(given.MayCall, name)
	}
	return given, nil
}

// Unit returns the unit of a capsule with what the flags give it, where there are the upstreams of a file.
func (f *Given) Unit(c *capsule.Capsule, upstreams string) (*unit.Unit, error) {
	given, err := f.given()
	if err != nil {
		return nil, err
	}
	table, err := ReadUpstreams(upstreams)
	if err != nil {
		return nil, err
	}
	u := unit.Of(c)
	u.Govern(given, unit.Bounds{Services: slices.AppendSeq([]string{}, maps.Keys(table))})
	return u, nil
}

// RefuseOnServer returns a fault if a flag is set that only means something here.
func (f *Given) RefuseOnServer() error {
	if f.File == "" && len(f.MayCall) == 0 {
		return nil
	}
	return fault.New(fault.Input, "--unit-config and --may-call are for runs on this machine").
		WithHint("a server's operator writes the same below unit.NAME in the server's file, see docs/configuration.md")
}

// GivenOf converts what the server's file says of a unit.
func GivenOf(u config.UnitConfig) unit.Given {
	given := unit.Given{
		Env: u.Env, Network: u.Network, Needs: u.Needs, MayCall: u.MayCall, MayNotCall: u.MayNotCall,
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

// upstreamsPath is that of the flag, else that of the environment; "" is none.
func upstreamsPath(given string) string { return cmp.Or(given, os.Getenv("AOD_UPSTREAMS")) }

// ReadUpstreams reads the table of a file, else that of AOD_UPSTREAMS; without both it is empty.
func ReadUpstreams(given string) (upstream.Table, error) {
	path := upstreamsPath(given)
	if path == "" {
		return nil, nil
	}
	raw, err := safefs.ReadNamed(path, maxTable)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the upstreams in %q can't be read", path).
			WithHint("name a YAML file with upstreams")
	}
	table, findings := upstream.ReadFile(path, raw)
	if len(findings) > 0 {
		return nil, fault.New(fault.Input, "the upstreams in %q are not valid", path).WithFindings(findings)
	}
	return table, nil
}

// Start says how an agent's program starts.
type Start struct {
	env []string
	Dir string
}

// Register adds the flags to a command.
func (f *Start) Register(set *pflag.FlagSet) {
	set.StringArrayVarP(&f.env, "env", "e", nil,
		"set a variable that the agent's caller_env names: `NAME=VALUE`; may be repeated")
	set.StringVar(&f.Dir, "dir", "", "start in this directory below the agent's own")
}

// Variables returns the variables of the environment; nil: there are none.
func (f *Start) Variables() (map[string]string, error) {
	var env map[string]string
	for _, one := range f.env {
		name, value, ok := strings.Cut(one, "=")
		if _, twice := env[name]; !ok || name == "" || twice {
			return nil, fault.New(fault.Input, "--env %s is not NAME=VALUE, or stands twice", fault.Quote(name))
		}
		if env == nil {
			env = map[string]string{}
		}
		env[name] = value
	}
	return env, nil
}
