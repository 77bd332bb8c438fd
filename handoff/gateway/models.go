package gateway

import (
	"maps"
	"net/http"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// getModels answers which models the run may ask for, or what one of them is.
func (h *handler) getModels(w http.ResponseWriter, r *http.Request, name string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		answerRefusal(w, catalog.Chat, refuse(http.StatusMethodNotAllowed, RuleRequest, "this address takes GET alone").
			hint("models are the operator's business"))
		return
	}
	known := &h.gw.catalog.Load().Catalog
	var body any
	if name != "" {
		m, err := h.session.model(known, name)
		if err != nil {
			answerRefusal(w, catalog.Chat, refusalOf(err))
			return
		}
		body = describe(known, name, m)
	} else {
		list := []any{}
		for _, name := range slices.Sorted(slices.Values(h.session.Models)) {
			if m, err := h.session.model(known, name); err == nil {
				list = append(list, describe(known, name, m))
			}
		}
		body = map[string]any{"object": "list", "data": list}
	}
	raw, _ := strictjson.Encode(body) // texts and numbers can be written
	w.Header().Set("Content-Type", typeJSON)
	_, _ = w.Write(raw) // whoever asked may be gone
}

// describe is a model in the shape of OpenAI's list, with what is ours beside it.
func describe(known *catalog.Catalog, name string, m catalog.Model) map[string]any {
	l := known.Limits(m)
	ours := map[string]any{"dialects": known.Dialects(m), "max_output": l.MaxOutput, "images": *l.Images}
	if l.Context > 0 {
		ours["context"] = l.Context
	}
	if others := translatedDialects(known, m); len(others) > 0 {
		ours["translated"] = others
	}
	if p := m.Price; p != nil {
		ours["price"] = map[string]any{
			"input": price(p.Input), "cached": price(p.Cached),
			"cache_write": price(p.CacheWrite), "output": price(p.Output),
		}
	}
	return map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "aod", "aod": ours}
}

// price is what a million tokens cost, in the currency.
func price(billionths int64) float64 { return float64(billionths) / 1e9 }

// model returns a model that the run may ask for. The error is a *Refusal.
func (s *Session) model(known *catalog.Catalog, name string) (catalog.Model, error) {
	m, there := known.Model(name)
	if !there {
		mayAsk := func(other string, _ catalog.Model) bool { return !slices.Contains(s.Models, other) }
		asked := maps.Clone(known.Models)
		maps.DeleteFunc(asked, mayAsk)
		hint := fault.Suggest(name, slices.Collect(maps.Keys(asked)),
			"add it to models in the server's file; for one command name a file with --models, or have a provider's "+
				"key in OPENAI_API_KEY or ANTHROPIC_API_KEY")
		return m, refuse(http.StatusNotFound, RuleModel, "there is no model %s", fault.Quote(name)).hint("%s", hint)
	}
	if !slices.Contains(s.Models, name) {
		return m, refuse(http.StatusForbidden, RuleModel, "%s may not ask the model %s", s.who(), fault.Quote(name)).
			hint("add it to models in its agent.yaml, and to unit.%s.models in the server's file where that is set",
				s.Unit)
	}
	return m, nil
}

func (s *Session) who() string {
	if s.Unit == "" {
		return "this run"
	}
	return "the unit " + s.Unit
}

// Models lists what the catalogue has, by name, for its operator. It asks no provider, but
// reads their keys.
func (g *Gateway) Models() []api.Model {
	known := &g.catalog.Load().Catalog
	list := make([]api.Model, 0, len(known.Models))
	for _, name := range slices.Sorted(maps.Keys(known.Models)) {
		m := known.Models[name]
		l := known.Limits(m)
		told := api.Model{
			Name: name, Order: string(m.Order), Context: l.Context, MaxOutput: l.MaxOutput, Images: *l.Images,
			Problem: g.problem(known, m),
		}
		for _, d := range known.Dialects(m) {
			told.Dialects = append(told.Dialects, string(d))
		}
		for _, d := range translatedDialects(known, m) {
			told.Translated = append(told.Translated, string(d))
		}
		for _, use := range m.Use {
			told.Use = append(told.Use, use.String())
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
