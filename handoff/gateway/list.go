package gateway

import (
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// Models lists what the catalogue has, by name, for its operator. It asks no provider, but
// reads their keys.
func (g *Gateway) Models() []api.Model {
	known := &g.catalog.Load().Catalog
	list := make([]api.Model, 0, len(known.Models))
	for _, name := range slices.Sorted(maps.Keys(known.Models)) {
		m := known.Models[name]
		told := api.Model{Name: name, MaxOutput: m.OutputCap(), Problem: g.problem(known, m)}
		for _, d := range known.Dialects(m) {
			told.Dialects = append(told.Dialects, string(d))
		}
		for _, use := range m.Use {
			told.Use = append(told.Use, use.Provider+"/"+use.Model)
		}
		if p := m.Price; p != nil {
			told.Price = &api.Price{
				Input: api.Cost(p.Input), Cached: api.Cost(p.Cached),
				CacheWrite: api.Cost(p.CacheWrite), Output: api.Cost(p.Output),
			}
		}
		list = append(list, told)
	}
	return list
}

// problem says why a provider of a model can't be asked, in a text without a secret.
func (g *Gateway) problem(known *catalog.Catalog, m catalog.Model) string {
	for _, use := range m.Use {
		key := known.Providers[use.Provider].Key
		if key == "" {
			continue
		}
		if _, err := g.opts.Key(key); err != nil {
			return fault.Public(err).Msg
		}
	}
	return ""
}
