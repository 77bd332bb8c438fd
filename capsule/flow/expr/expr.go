// Package expr is the language of the expressions in flow.yaml: `${{ }}` around expr-lang/expr, which only this package
// imports.
//
// A value that is one expression keeps its type; with text around it, it is text. Results are never read as
// expressions. There is no clock, no randomness and no environment in it, and its costs are bounded.
//
// The main path: Source.Parse finds the expressions in a value (scan.go) and compiles each (compile.go) so that it
// looks at a meter wherever it could take long or grow (meter.go); Template.Eval runs them and makes JSON values of
// what comes out (normal.go).
//
// It must not know flows or contracts.
//
// Its Go API may change with every release: see docs/stability.md.
package expr

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Template is a value of flow.yaml whose texts may hold expressions. It is safe for concurrent
// use.
type Template struct {
	raw     any    // as it was given, numbers as expressions see them
	pointer string // into the file
	form    form
}

// form is a value, taken apart. It is one of: a literal, an expression, a text of several
// parts, a list, an object.
type form struct {
	literal any
	code    *code
	parts   []part
	list    []*Template
	object  map[string]*Template
}

// part of a text: an expression, or a literal where code is nil.
type part struct {
	text string
	code *code
}

// Vars are what expressions see, by name: JSON values, and values of other types that are
// handed on as they are. Integers are int64.
type Vars map[string]any

// Source is a file with templates. The zero value is one without a name.
type Source struct {
	File   string
	LineAt func(pointer string) int // nil: lines aren't known
}

// Parse reads a value of the file: JSON values, as strictyaml makes them. The findings have
// pointers into the file, which begin with pointer, and say in the message at which column of
// a text. The template is never nil, and fails at Eval where there were findings.
func (s Source) Parse(value any, pointer string) (*Template, []fault.Finding) {
	t := &Template{raw: value, pointer: pointer}
	switch v := value.(type) {
	case string:
		v = strings.ToValidUTF8(v, "\uFFFD")
		t.raw = v
		return t, s.parseText(t, v)
	case []any:
		return t, s.parseList(t, v)
	case map[string]any:
		return t, s.parseObject(t, v)
	}
	literal, err := Values(value)
	if err != nil {
		return t, []fault.Finding{{File: s.File, Line: s.line(pointer), Pointer: pointer, Message: err.Error()}}
	}
	t.raw, t.form.literal = literal, literal
	return t, nil
}

func (s Source) line(pointer string) int {
	if s.LineAt == nil {
		return 0
	}
	return s.LineAt(pointer)
}

func (s Source) parseList(t *Template, list []any) (findings []fault.Finding) {
	t.form.list = make([]*Template, len(list))
	raw := make([]any, len(list))
	for i, item := range list {
		sub, problems := s.Parse(item, t.pointer+"/"+strconv.Itoa(i))
		t.form.list[i], raw[i] = sub, sub.raw
		findings = append(findings, problems...)
	}
	t.raw = raw
	return findings
}

func (s Source) parseObject(t *Template, object map[string]any) (findings []fault.Finding) {
	t.form.object = make(map[string]*Template, len(object))
	raw := make(map[string]any, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		sub, problems := s.Parse(object[key], t.pointer+"/"+strictjson.Escape(key))
		t.form.object[key], raw[key] = sub, sub.raw
		findings = append(findings, problems...)
	}
	t.raw = raw
	return findings
}

// Raw returns the value as it stands in the file. It must not be changed.
func (t *Template) Raw() any { return t.raw }

// Pointer returns the place of the value in its file.
func (t *Template) Pointer() string { return t.pointer }

// Literal returns the value of a template without expressions.
func (t *Template) Literal() (value any, ok bool) {
	plain := true
	t.each(func(*code) { plain = false })
	if !plain {
		return nil, false
	}
	value, err := t.Eval(context.Background(), nil)
	return value, err == nil
}

// Single reports whether the whole value is one expression, so that its type is that of the
// expression.
func (t *Template) Single() bool { return t.form.code != nil }

// Text reports whether the value can only be a text: one with text around expressions.
func (t *Template) Text() bool { return t.form.parts != nil }

// Members returns the templates of an object's members; nil where the value isn't written
// as an object. They must not be changed.
func (t *Template) Members() map[string]*Template { return t.form.object }

// Items returns the templates of a list's items; nil where the value isn't written as a list.
func (t *Template) Items() []*Template { return t.form.list }

// Eval returns the value with the results of its expressions: JSON values with int64 for
// integers, and values of vars of other types. It shares parts with vars, and neither may be
// changed. The error is a Capsule fault that names the place, or the cause of ctx's end. It
// takes at most 250 ms of processor time for each expression (on Linux; else of time), and the
// memory budget.
func (t *Template) Eval(ctx context.Context, vars Vars) (any, error) {
	f := t.form
	switch {
	case f.code != nil:
		return f.code.eval(ctx, vars)
	case f.parts != nil:
		return evalText(ctx, f.parts, vars)
	case f.list != nil:
		list := make([]any, len(f.list))
		for i, item := range f.list {
			var err error
			if list[i], err = item.Eval(ctx, vars); err != nil {
				return nil, err
			}
		}
		return list, nil
	case f.object != nil:
		object := make(map[string]any, len(f.object))
		for _, key := range slices.Sorted(maps.Keys(f.object)) {
			var err error
			if object[key], err = f.object[key].Eval(ctx, vars); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return f.literal, nil
}

func evalText(ctx context.Context, parts []part, vars Vars) (any, error) {
	var b strings.Builder
	for _, p := range parts {
		if p.code == nil {
			b.WriteString(p.text)
			continue
		}
		value, err := p.code.eval(ctx, vars)
		if err != nil {
			return nil, err
		}
		text, err := textOf(value, maxText-b.Len())
		if err != nil {
			return nil, p.code.failed(err, 0)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}
