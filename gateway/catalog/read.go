package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/strictjson"
	"github.com/agent-on-demand/aod/strictyaml"
)

// Read reads a file that holds both tables and nothing else.
func Read(file string, raw []byte) (Catalog, []fault.Finding) {
	doc, findings := strictyaml.Parse(file, raw)
	if len(findings) > 0 {
		return Catalog{}, findings
	}
	var c Catalog
	r := &reader{doc: doc}
	r.object("", doc.Value, fields{
		"providers": func(at string, v any) { c.Providers = r.providers(at, v) },
		"models":    func(at string, v any) { c.Models = r.models(at, v) },
	})
	if len(r.findings) == 0 {
		r.check("/models", c)
	}
	return c, r.findings
}

// Providers reads the table of providers, which is all of the document.
func Providers(doc *strictyaml.Document) (map[string]Provider, []fault.Finding) {
	r := &reader{doc: doc}
	return r.providers("", doc.Value), r.findings
}

// Models reads the table of models, which is all of the document.
func Models(doc *strictyaml.Document) (map[string]Model, []fault.Finding) {
	r := &reader{doc: doc}
	return r.models("", doc.Value), r.findings
}

// Check finds what a table of models uses and the catalog doesn't have. The document is the
// one that the models were read from.
func Check(doc *strictyaml.Document, c Catalog) []fault.Finding {
	r := &reader{doc: doc}
	r.check("", c)
	return r.findings
}

func (r *reader) check(under string, c Catalog) {
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		for i, use := range c.Models[name].Use {
			if _, known := c.Providers[use.Provider]; known {
				continue
			}
			r.report(fmt.Sprintf("%s/%s/use/%d", under, strictjson.Escape(name), i), "there is no provider "+fault.Quote(use.Provider),
				fault.Suggest(use.Provider, slices.Collect(maps.Keys(c.Providers)), "add it to providers"))
		}
	}
}

// reader reads values of a document, and gathers what is wrong with them.
type reader struct {
	doc      *strictyaml.Document
	findings []fault.Finding
}

// fields are the readers of an object's fields, each of which is told the pointer.
type fields map[string]func(at string, v any)

func (r *reader) report(at, message, hint string) {
	path := strictjson.Path(at)
	if len(path) > 0 {
		message = strings.Join(path, ".") + ": " + message
	}
	r.findings = append(r.findings, fault.Finding{File: r.doc.File, Line: r.doc.LineAt(at), Message: message, Hint: hint})
}

// object reads an object whose fields are known.
func (r *reader) object(at string, v any, known fields) {
	names := slices.Sorted(maps.Keys(known))
	for name, value := range r.each(at, v) {
		if read, ok := known[name]; ok {
			read(under(at, name), value)
			continue
		}
		r.report(under(at, name), "nothing has this name", fault.Suggest(name, names, "there are "+strings.Join(names, ", ")))
	}
}

// each yields the fields of an object by name; of nothing, none.
func (r *reader) each(at string, v any) func(func(string, any) bool) {
	object, ok := v.(map[string]any)
	if !ok && v != nil {
		r.report(at, "it isn't a map", "write names with their values")
	}
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if !yield(name, object[name]) {
				return
			}
		}
	}
}

func under(at, name string) string { return at + "/" + strictjson.Escape(name) }

func (r *reader) text(into *string) func(string, any) {
	return func(at string, v any) {
		s, ok := v.(string)
		if !ok || s == "" || len(s) > maxText {
			r.report(at, "it isn't a text", fmt.Sprintf("write 1 to %d bytes", maxText))
			return
		}
		*into = s
	}
}

func (r *reader) boolean(into *bool) func(string, any) {
	return func(at string, v any) {
		b, ok := v.(bool)
		if !ok {
			r.report(at, "it isn't true or false", "write true or false")
		}
		*into = b
	}
}

func (r *reader) integer(into *int64, most int64) func(string, any) {
	return func(at string, v any) {
		n, ok := v.(int64)
		if !ok || n < 1 || n > most {
			r.report(at, "it isn't a number from 1", fmt.Sprintf("write a whole number from 1 to %d, or leave it out", most))
			return
		}
		*into = n
	}
}

// list reads a list of texts, each with its own check.
func (r *reader) list(at string, v any, hint string, take func(string) bool) {
	items, ok := v.([]any)
	if !ok || len(items) == 0 {
		r.report(at, "it isn't a list", hint)
		return
	}
	for i, item := range items {
		if s, ok := item.(string); !ok || !take(s) {
			r.report(fmt.Sprintf("%s/%d", at, i), "it isn't one of what can stand here", hint)
		}
	}
}
