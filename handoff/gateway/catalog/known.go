package catalog

import (
	"net/url"

	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

// vendorHosts are those of the kinds that have one.
var vendorHosts = map[Kind]string{OpenAI: "api.openai.com", Anthropic: "api.anthropic.com"}

// knownTable is what vendors listed of their models at a date.
type knownTable[T any] struct {
	asOf string
	rows map[string]map[string]*T // by the host of a provider, and its name of a model
}

// readKnown reads the rows of a table under their name. A test keeps the files valid.
func readKnown[T any](raw []byte, name string, row func(r *reader, at string, v any) *T) (t knownTable[T]) {
	doc, _ := strictyaml.Parse(name+".yaml", raw)
	r := readerOf(doc)
	t.rows = map[string]map[string]*T{}
	r.Object("", doc.Value, strictyaml.Fields{"as_of": r.text(&t.asOf), name: func(at string, v any) {
		for host, models := range r.Each(at, v) {
			t.rows[host] = map[string]*T{}
			for model, value := range r.Each(strictyaml.Under(at, host), models) {
				t.rows[host][model] = row(r, strictyaml.Under(at, model), value)
			}
		}
	}})
	return t
}

// of returns the row of a provider's model; nil: there is none.
func (t knownTable[T]) of(p Provider, model string) *T {
	host := vendorHosts[p.Kind]
	if p.BaseURL != "" {
		u, err := url.Parse(p.BaseURL)
		if err != nil {
			return nil
		}
		host = u.Hostname()
	}
	return t.rows[host][model]
}
