package strictyaml

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Reader reads the values of a document, and gathers what is wrong with them.
type Reader struct {
	Doc      *Document
	Findings []fault.Finding
}

// Fields are the readers of an object's fields, each of which is told the pointer.
type Fields map[string]func(at string, v any)

// Report adds a finding of what stands at a pointer. The message begins with the way there.
func (r *Reader) Report(at, message, hint string) {
	if path := strictjson.Path(at); len(path) > 0 {
		message = strings.Join(path, ".") + ": " + message
	}
	r.Findings = append(r.Findings, fault.Finding{
		File: r.Doc.File, Line: r.Doc.LineAt(at), Message: message,
		Hint: hint,
	})
}

// Object reads an object whose fields are known.
func (r *Reader) Object(at string, v any, known Fields) {
	names := slices.Sorted(maps.Keys(known))
	for name, value := range r.Each(at, v) {
		if read, ok := known[name]; ok {
			read(Under(at, name), value)
			continue
		}
		r.Report(Under(at, name), "nothing has this name",
			fault.Suggest(name, names, "there are "+strings.Join(names, ", ")))
	}
}

// Each yields the fields of an object by name; of nothing, none.
func (r *Reader) Each(at string, v any) iter.Seq2[string, any] {
	object, ok := v.(map[string]any)
	if !ok && v != nil {
		r.Report(at, "it isn't a map", "write names with their values")
	}
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if !yield(name, object[name]) {
				return
			}
		}
	}
}

// Under is the pointer of a field of what stands at another one.
func Under(at, name string) string { return at + "/" + strictjson.Escape(name) }

// Boolean reads true or false.
func (r *Reader) Boolean(into *bool) func(string, any) {
	return func(at string, v any) {
		b, ok := v.(bool)
		if !ok {
			r.Report(at, "it isn't true or false", "write true or false")
		}
		*into = b
	}
}

// Texts reads a list of one text or more, at most so many, and reports those that take refuses.
func (r *Reader) Texts(at string, v any, most int, hint string, take func(string) bool) {
	items, ok := v.([]any)
	if !ok || len(items) == 0 || len(items) > most {
		r.Report(at, "it isn't a list", hint)
		return
	}
	for i, item := range items {
		if s, ok := item.(string); !ok || !take(s) {
			r.Report(fmt.Sprintf("%s/%d", at, i), "it isn't one of what can stand here", hint)
		}
	}
}
