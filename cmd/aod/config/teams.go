package config

import (
	"iter"
	"maps"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// Quota holds the most that a team or a token may have; 0 is no bound of its own.
type Quota struct {
	Slots    int // runs that hold one at once
	Queued   int // runs that wait
	Sessions int // that aren't closed
	// MCPSessions are those of MCP of all its clients, with the server's tools and with MCP servers.
	MCPSessions int
	Storage     int64 // bytes that its runs take
	Spending
}

// TeamConfig holds the settings of a team.
type TeamConfig struct {
	Quota
	// RetentionAge is how long its ended runs are kept; 0: as long as those of all.
	RetentionAge time.Duration
}

// Spending is the most that a team or a token may spend on models in a day and in a month; 0 is no bound.
type Spending struct {
	ModelCost   struct{ Day, Month api.Cost }
	ModelTokens struct{ Day, Month int }
}

const (
	teamsKey  = "teams"
	tokensKey = "tokens"
)

// quota is the table of what bounds a team or a token. It can be set in the file only.
func (t *Quota) quota() []setting {
	return []setting{
		{"slots", integer{&t.Slots, 0, 10_000}, "0", "slots that its runs hold at once; 0 is what is free in its turn"},
		{"queued", integer{&t.Queued, 0, 1_000_000}, "0", "runs that may wait, of all units together; 0 is no bound"},
		{"sessions", integer{&t.Sessions, 0, 100_000}, "0", "sessions that may be open; 0 is no bound"},
		{
			"mcp_sessions",
			integer{&t.MCPSessions, 0, 100_000},
			"0",
			"sessions of MCP that all its clients may have together, with tools and with MCP servers; 0 is no bound",
		},
		{
			"storage",
			size{&t.Storage, 0, pib},
			"0B",
			"what its runs may take on disk, beyond which new ones are refused; 0 is no bound",
		},
	}
}

// settings is the table of the settings of one team. They can be set in the file only.
func (t *TeamConfig) settings() []setting {
	return append(t.quota(), setting{
		"retention_age",
		duration{&t.RetentionAge, 0, 3660 * day},
		"0s",
		"how long its ended runs are kept, instead of retention_age; 0 is that",
	})
}

// cost is the table of model_cost.
func (s *Spending) cost() []setting {
	return []setting{
		{"day", money{&s.ModelCost.Day}, "0", "the most that models may cost in a day (UTC), in the prices' currency"},
		{"month", money{&s.ModelCost.Month}, "0", "likewise in a month of the calendar; 0 is no bound"},
	}
}

// tokens is the table of model_tokens.
func (s *Spending) tokens() []setting {
	const most = 1_000_000_000_000
	return []setting{
		{"day", integer{&s.ModelTokens.Day, 0, most}, "0", "the most tokens of models in a day (UTC); 0 is no bound"},
		{"month", integer{&s.ModelTokens.Month, 0, most}, "0", "likewise in a month of the calendar"},
	}
}

// spending lists what may be spent that the file says, below a key.
func (c *Config) spending(under string, s *Spending) []Value {
	return c.given(append(
		c.valuesOf(join(under, "model_cost"), s.cost()), c.valuesOf(join(under, "model_tokens"), s.tokens())...))
}

// readers read what may be spent, below a key.
func (s *Spending) readers(f *file, under string) map[string]reader {
	setDefaults(s.cost())
	setDefaults(s.tokens())
	return map[string]reader{
		"model_cost":   f.block(join(under, "model_cost"), s.cost()),
		"model_tokens": f.block(join(under, "model_tokens"), s.tokens()),
	}
}

// teams reads the settings of teams, by name.
func (f *file) teams(line int, n *yaml.Node) {
	for key, value := range f.named(teamsKey, line, n, api.CheckTeam) {
		var t TeamConfig
		f.quota(&t.Quota, t.settings(), teamsKey, key, value)
		f.config.Teams[key.Value] = t
	}
}

// tokens reads what single tokens may have, by name.
func (f *file) tokens(line int, n *yaml.Node) {
	for key, value := range f.named(tokensKey, line, n, checkTokenName) {
		var q Quota
		f.quota(&q, q.quota(), tokensKey, key, value)
		f.config.Tokens[key.Value] = q
	}
}

// quota reads the settings of a team or a token with those of what it may spend.
func (f *file) quota(q *Quota, settings []setting, block string, key, value *yaml.Node) {
	setDefaults(settings)
	under := join(block, key.Value)
	keys := f.readers(under, settings)
	maps.Copy(keys, q.readers(f, under))
	f.object(under, key.Line, value, keys)
}

// named yields the keys of a mapping that are names of a kind, with their values.
func (f *file) named(
	under string, line int, n *yaml.Node, check func(name string) error,
) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for key, value := range f.pairs(under, line, n) {
			if err := check(key.Value); err != nil {
				public := fault.Public(err)
				f.report(f.at(key.Line), named(under, public.Msg), public.Hint)
				continue
			}
			if !yield(key, value) {
				return
			}
		}
	}
}
