package catalog

import (
	_ "embed" // the table of prices
	"net/url"
	"sync"

	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

//go:embed prices.yaml
var pricesFile []byte

// vendorHosts are those of the kinds that have one.
var vendorHosts = map[Kind]string{OpenAI: "api.openai.com", Anthropic: "api.anthropic.com"}

type priceTable struct {
	asOf   string
	prices map[string]map[string]*Price // by the host of a provider, and its name of a model
}

// prices reads the table, which a test keeps valid.
var prices = sync.OnceValue(func() (t priceTable) {
	doc, _ := strictyaml.Parse("prices.yaml", pricesFile)
	r := readerOf(doc)
	t.prices = map[string]map[string]*Price{}
	r.Object("", doc.Value, strictyaml.Fields{"as_of": r.text(&t.asOf), "prices": func(at string, v any) {
		for host, models := range r.Each(at, v) {
			t.prices[host] = map[string]*Price{}
			for name, value := range r.Each(strictyaml.Under(at, host), models) {
				t.prices[host][name] = r.price(strictyaml.Under(at, name), value)
			}
		}
	}})
	return t
})

// KnownPrice returns about what a provider takes for a model, by a table of the date asOf; nil: it isn't in there.
func KnownPrice(p Provider, model string) (price *Price, asOf string) {
	host := vendorHosts[p.Kind]
	if p.BaseURL != "" {
		u, err := url.Parse(p.BaseURL)
		if err != nil {
			return nil, ""
		}
		host = u.Hostname()
	}
	return prices().prices[host][model], prices().asOf
}
