package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// fields are the keys of an object of the file. Reading one of another type than wanted is
// reported, and gives the zero value.
type fields struct {
	r       *reader
	pointer string
	values  map[string]any
}

// fields reports the keys that aren't known.
func (r *reader) fields(pointer string, object map[string]any, known []string) fields {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, key) {
			r.report(pointer+"/"+strictjson.Escape(key), "the key "+fault.Quote(key)+" is unknown", oneOf(key, known))
		}
	}
	return fields{r: r, pointer: pointer, values: object}
}

func (f fields) has(key string) bool {
	_, ok := f.values[key]
	return ok
}

func (f fields) at(key string) string { return f.pointer + "/" + strictjson.Escape(key) }

func (f fields) wrong(key, expected string) {
	f.r.report(f.at(key), fmt.Sprintf("%s must be %s, not %s", key, expected, kindOf(f.values[key])), "")
}

func kindOf(value any) string {
	if value == nil {
		return "empty"
	}
	return nature(value)
}

func (f fields) object(key string) (map[string]any, bool) {
	if !f.has(key) {
		return nil, false
	}
	object, ok := f.values[key].(map[string]any)
	if !ok {
		f.wrong(key, "an object")
	}
	return object, ok
}

func (f fields) text(key string) string {
	if !f.has(key) {
		return ""
	}
	text, ok := f.values[key].(string)
	if !ok {
		f.wrong(key, "a text")
	}
	return text
}

func (f fields) texts(key string) []string {
	if !f.has(key) {
		return nil
	}
	list, ok := f.values[key].([]any)
	if !ok || len(list) == 0 {
		f.wrong(key, "a list of texts")
		return nil
	}
	var texts []string
	for _, item := range list {
		text, ok := item.(string)
		switch {
		case !ok:
			f.wrong(key, "a list of texts only")
			return nil
		case slices.Contains(texts, text):
			f.r.report(f.at(key), fmt.Sprintf("%s has %s twice", key, fault.Quote(text)), "keep one of them")
		}
		texts = append(texts, text)
	}
	return texts
}

// whole reads a number from 1.
func (f fields) whole(key string, most, otherwise int) int {
	if !f.has(key) {
		return otherwise
	}
	n, ok := f.values[key].(int64)
	if !ok || n < 1 || n > int64(most) {
		f.r.report(f.at(key), fmt.Sprintf("%s must be a whole number from 1 to %d", key, most), "")
		return otherwise
	}
	return int(n)
}

func (f fields) number(key string, least, most float64) float64 {
	if !f.has(key) {
		return 0
	}
	var n float64
	switch v := f.values[key].(type) {
	case int64:
		n = float64(v)
	case float64:
		n = v
	default:
		n = least - 1
	}
	if n < least || n > most {
		f.r.report(f.at(key), fmt.Sprintf("%s must be a number from %g to %g", key, least, most), "")
		return 0
	}
	return n
}

func (f fields) duration(key string, least, most time.Duration) time.Duration {
	if !f.has(key) {
		return 0
	}
	text, ok := f.values[key].(string)
	d, err := quantity.ParseDuration(text, least, most)
	if !ok || err != nil {
		f.r.report(f.at(key), fmt.Sprintf("%s must be a duration from %s to %s", key, quantity.DurationText(least),
			quantity.DurationText(most)),
			"write it with its unit, such as 30s, 5m or 1h30m")
		return 0
	}
	return d.Truncate(time.Millisecond) // what is finer can't be written
}

// template reads a value that may hold expressions; nil where it isn't there.
func (f fields) template(key string) *expr.Template {
	if !f.has(key) {
		return nil
	}
	return f.r.template(f.at(key), f.values[key])
}

// shaped is template for a value that is an expression or written as what a test takes. A text
// with other text around its expression is none.
func (f fields) shaped(key, expected string, fits func(t *expr.Template) bool) *expr.Template {
	t := f.template(key)
	if t == nil || t.Single() || fits(t) {
		return t
	}
	if t.Text() {
		f.r.report(f.at(key), fmt.Sprintf("%s must be %s, and a value with text around ${{ }} is a text", key,
			expected), "put the whole of it into one ${{ }}")
	} else {
		f.r.report(f.at(key), fmt.Sprintf("%s must be %s, not %s", key, expected, kindOf(f.values[key])), "")
	}
	return t
}

func isObject(t *expr.Template) bool { return t.Members() != nil }
func isList(t *expr.Template) bool   { return t.Items() != nil }

func isBool(t *expr.Template) bool {
	value, _ := t.Literal()
	_, ok := value.(bool)
	return ok
}

func isText(t *expr.Template) bool {
	value, _ := t.Literal()
	_, ok := value.(string)
	return ok || t.Text()
}

func (r *reader) template(pointer string, value any) *expr.Template {
	t, findings := r.source.Parse(value, pointer)
	for _, f := range findings {
		f.Line = cmp.Or(f.Line, r.doc.LineAt(pointer))
		r.findings = append(r.findings, f)
	}
	return t
}

// schema checks that a value of the file is one, and moves what is wrong to where it stands:
// within is what was put around it.
func (r *reader) schema(pointer string, schema map[string]any, within string) {
	raw, err := json.Marshal(schema)
	if err != nil {
		r.report(pointer, "it can't be read as a schema", "")
		return
	}
	_, findings := contract.Compile(raw)
	for _, f := range findings {
		f.File, f.Pointer = FileName, pointer+strings.TrimPrefix(f.Pointer, within)
		f.Line = r.doc.LineAt(f.Pointer)
		r.findings = append(r.findings, f)
	}
}
