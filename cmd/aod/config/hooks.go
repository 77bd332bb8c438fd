package config

import (
	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// HookConfig holds what starts a run when somebody elsewhere sends a webhook.
type HookConfig struct {
	Unit   string // that is run
	Team   string // that owns the runs
	Secret string // the name of the secret by which the messages are signed
}

const hooksKey = "hooks"

// settings is the table of the settings of one hook. They can be set in the file only.
func (h *HookConfig) settings() []setting {
	return []setting{
		{"unit", unitName(&h.Unit), "", "the unit that is run, with the message as its input; required"},
		{"team", teamName(&h.Team), api.DefaultTeam, "the team that owns the runs"},
		{
			"secret", secretName(&h.Secret), "",
			"the name of the secret by which messages are signed: whsec_ and base64; required",
		},
	}
}

// teamName is the name of a team.
func teamName(into *string) single {
	return single{
		into, "name", "write the name of a team, such as research",
		func(name string) (string, error) { return name, api.CheckTeam(name) },
	}
}

func checkHookName(name string) error {
	if api.CheckUnitName(name) != nil {
		return fault.New(fault.Input, "%s is not a valid name of a hook", fault.Quote(name)).
			WithHint("write lower-case letters and digits, joined by `-`, `_` or `.`, such as deploy")
	}
	return nil
}

// hooks reads the hooks, by name.
func (f *file) hooks(line int, n *yaml.Node) {
	for key, value := range f.named(hooksKey, line, n, checkHookName) {
		at := join(hooksKey, key.Value)
		var h HookConfig
		f.fresh(at, h.settings())(key.Line, value)
		if h.Unit == "" || h.Secret == "" {
			f.report(f.at(key.Line), named(at, "it needs a unit and a secret"), "write unit: NAME and secret: NAME")
		}
		f.config.Hooks[key.Value] = h
	}
}
