package catalog

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

// Read reads a file that holds both tables and nothing else.
func Read(file string, raw []byte) (Catalog, []fault.Finding) {
	doc, findings := strictyaml.Parse(file, raw)
	if len(findings) > 0 {
		return Catalog{}, findings
	}
	var c Catalog
	r := readerOf(doc)
	r.Object("", doc.Value, strictyaml.Fields{
		"providers": func(at string, v any) { c.Providers = r.providers(at, v) },
		"models":    func(at string, v any) { c.Models = r.models(at, v) },
	})
	if len(r.Findings) == 0 {
		r.check("/models", c)
	}
	return c, r.Findings
}

// Providers reads the table of providers, which is all of the document.
func Providers(doc *strictyaml.Document) (map[string]Provider, []fault.Finding) {
	r := readerOf(doc)
	return r.providers("", doc.Value), r.Findings
}

// Models reads the table of models, which is all of the document.
func Models(doc *strictyaml.Document) (map[string]Model, []fault.Finding) {
	r := readerOf(doc)
	return r.models("", doc.Value), r.Findings
}

// Check finds what a table of models uses and the catalog doesn't have. The document is the
// one that the models were read from.
func Check(doc *strictyaml.Document, c Catalog) []fault.Finding {
	r := readerOf(doc)
	r.check("", c)
	return r.Findings
}

func (r *reader) check(under string, c Catalog) {
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		for i, use := range c.Models[name].Use {
			if _, known := c.Providers[use.Provider]; known {
				continue
			}
			r.Report(fmt.Sprintf("%s/%s/use/%d", under, strictjson.Escape(name), i),
				"there is no provider "+fault.Quote(use.Provider),
				fault.Suggest(use.Provider, slices.Collect(maps.Keys(c.Providers)), "add it to providers"))
		}
	}
}

// reader reads both tables.
type reader struct{ strictyaml.Reader }

func readerOf(doc *strictyaml.Document) *reader { return &reader{strictyaml.Reader{Doc: doc}} }

func (r *reader) text(into *string) func(string, any) {
	return func(at string, v any) {
		s, ok := v.(string)
		if !ok || s == "" || len(s) > maxText {
			r.Report(at, "it isn't a text", fmt.Sprintf("write 1 to %d bytes", maxText))
			return
		}
		*into = s
	}
}

func (r *reader) integer(into *int64, most int64) func(string, any) {
	return func(at string, v any) {
		n, ok := v.(int64)
		if !ok || n < 1 || n > most {
			r.Report(at, "it isn't a number from 1",
				fmt.Sprintf("write a whole number from 1 to %d, or leave it out", most))
			return
		}
		*into = n
	}
}

func (r *reader) timeouts(into *Timeouts) func(string, any) {
	return func(at string, v any) {
		r.Object(at, v, strictyaml.Fields{
			"first_byte": r.duration(&into.FirstByte), "silence": r.duration(&into.Silence),
			"whole": r.duration(&into.Whole),
		})
	}
}

// maxTimeout bounds a time of an attempt.
const maxTimeout = 24 * time.Hour

func (r *reader) duration(into *time.Duration) func(string, any) {
	return func(at string, v any) {
		text, _ := v.(string)
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 || d > maxTimeout {
			r.Report(at, "it isn't a time", "write one such as 30s or 5m, up to 24h")
			return
		}
		*into = d
	}
}
