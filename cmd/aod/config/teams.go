package config

import (
	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// TeamConfig holds the most that a team may have; 0 is no bound of its own.
type TeamConfig struct {
	Slots    int   // runs that hold one at once
	Queued   int   // runs that wait
	Sessions int   // that aren't closed
	Storage  int64 // bytes that its runs take
}

const teamsKey = "teams"

// settings is the table of the settings of one team. They can be set in the file only.
func (t *TeamConfig) settings() []setting {
	return []setting{
		{"slots", integer{&t.Slots, 0, 10_000}, "0", "slots that its runs hold at once; 0 is what is free in its turn"},
		{"queued", integer{&t.Queued, 0, 1_000_000}, "0", "runs that may wait, of all units together; 0 is no bound"},
		{"sessions", integer{&t.Sessions, 0, 100_000}, "0", "sessions that may be open; 0 is no bound"},
		{
			"storage",
			size{&t.Storage, 0, pib},
			"0B",
			"what its runs may take on disk, beyond which new ones are refused; 0 is no bound",
		},
	}
}

// teams reads the settings of teams, by name.
func (f *file) teams(line int, n *yaml.Node) {
	for key, value := range f.pairs(teamsKey, line, n) {
		if err := api.CheckTeam(key.Value); err != nil {
			public := fault.Public(err)
			f.report(f.at(key.Line), named(teamsKey, public.Msg), public.Hint)
			continue
		}
		var t TeamConfig
		setDefaults(t.settings())
		f.object(join(teamsKey, key.Value), key.Line, value, f.readers(join(teamsKey, key.Value), t.settings()))
		f.config.Teams[key.Value] = t
	}
}
