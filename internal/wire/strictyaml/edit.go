package strictyaml

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Edit is a YAML text whose values can be changed one at a time, while each byte around a change stays as it is: a
// change gives another Edit. One that would also make another value different is refused with an Input fault.
type Edit struct {
	*Document
	Raw   []byte
	lines []int // where they begin
}

// NewEdit reads a text. The error is an Input fault: it isn't YAML, or it is written so that its values can't be
// found again, as JSON is.
func NewEdit(file string, raw []byte) (*Edit, error) {
	doc, findings := Parse(file, raw)
	if len(findings) > 0 {
		return nil, fault.New(fault.Input, "it can't be read").WithFindings(findings)
	}
	e := &Edit{Document: doc, Raw: raw, lines: []int{0}}
	if doc.root == nil || doc.root.Column == 0 || bytes.Count(raw, []byte("\r")) != bytes.Count(raw, []byte("\r\n")) {
		return nil, onlyInText()
	}
	for i, c := range raw {
		if c == '\n' {
			e.lines = append(e.lines, i+1)
		}
	}
	return e, nil
}

func onlyInText() error {
	return fault.New(fault.Input, "this can't be changed by itself").
		WithHint("change it in the text, where all of it is seen")
}

// Entry is a value of an object.
type Entry struct {
	Key     string
	Text    string // of a plain value
	IsPlain bool   // neither an object nor a list
	IsText  bool   // not a number and the like
}

// Entries are those of an object, in their order; none of what isn't one.
func (e *Edit) Entries(pointer string) (all []Entry) {
	p := e.find(pointer)
	for i := 0; p.value != nil && p.value.Kind == yaml.MappingNode && i < len(p.value.Content); i += 2 {
		key, v := p.value.Content[i], p.value.Content[i+1]
		isText := v.ShortTag() == "!!str" || v.ShortTag() == "!!timestamp"
		all = append(all, Entry{key.Value, v.Value, v.Kind == yaml.ScalarNode, isText})
	}
	return all
}

// place is where a value stands, or would stand.
type place struct {
	in    *yaml.Node // the object that has it; nil: there is none
	index int        // of its key there
	value *yaml.Node // nil: it isn't there
}

// find looks for what a pointer names. It doesn't look behind aliases.
func (e *Edit) find(pointer string) place {
	p := place{value: e.root}
	for _, token := range strictjson.Path(pointer) {
		p = place{in: p.value}
		if p.in == nil || p.in.Kind != yaml.MappingNode {
			return place{}
		}
		for i := 0; i+1 < len(p.in.Content); i += 2 {
			if p.in.Content[i].Value == token {
				p.index, p.value = i, p.in.Content[i+1]
			}
		}
	}
	return p
}

// Source is a value as it is written, without the indentation that it has where it stands; "" where there is none.
func (e *Edit) Source(pointer string) string {
	p := e.find(pointer)
	if p.value == nil {
		return ""
	}
	from := e.start(p.value)
	text := strings.ReplaceAll(string(e.Raw[from:max(from, e.end(p.value))]), "\r\n", "\n")
	if isBlock(p.value) {
		text = strings.ReplaceAll(text, "\n"+strings.Repeat(" ", p.value.Column-1), "\n")
	}
	return text
}

// SetText changes a value to a text, in the style that it has where that can be.
func (e *Edit) SetText(pointer, text string) (*Edit, error) {
	const inLines = yaml.LiteralStyle | yaml.FoldedStyle
	var style yaml.Style
	if p := e.find(pointer); p.value != nil {
		style = p.value.Style & (inLines | yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle)
	} else if strings.Contains(text, "${{") {
		style = yaml.DoubleQuotedStyle
	}
	sources := []string{written(text, style&^inLines), written(text, yaml.DoubleQuotedStyle)}
	switch {
	case style&inLines != 0 || style == 0 && strings.Contains(text, "\n"):
		sources = slices.Insert(sources, 0, written(text, yaml.LiteralStyle))
	case style == 0:
		sources = slices.Insert(sources, 0, text)
	}
	return e.set(pointer, text, sources...)
}

// SetYAML changes a value to what a text of YAML holds, and writes it as it is there.
func (e *Edit) SetYAML(pointer, text string) (*Edit, error) {
	text = strings.TrimRight(strings.TrimLeft(text, "\n"), " \t\n")
	doc, findings := Parse(e.File, []byte(text))
	if len(findings) > 0 {
		return nil, fault.New(fault.Input, "it can't be read").WithFindings(findings)
	}
	return e.set(pointer, doc.Value, text)
}

func (e *Edit) set(pointer string, to any, sources ...string) (*Edit, error) {
	p, path := e.find(pointer), strictjson.Path(pointer)
	if p.in == nil {
		return nil, onlyInText()
	}
	key := path[len(path)-1]
	want := changed(e.Value, path, func(object map[string]any) { object[key] = to })
	if reflect.DeepEqual(want, e.Value) {
		return e, nil
	}
	var ways []cut
	for _, source := range sources {
		ways = append(ways, e.ways(p, key, source)...)
	}
	return e.try(want, ways)
}

// Remove takes a value out, with its key.
func (e *Edit) Remove(pointer string) (*Edit, error) {
	p, path := e.find(pointer), strictjson.Path(pointer)
	if p.in == nil || p.value == nil {
		return nil, onlyInText()
	}
	content := p.in.Content
	way := cut{from: e.start(content[p.index]), to: e.end(p.value)}
	switch {
	case len(content) == 2:
		way = cut{e.start(p.in), e.end(p.in), "{}"}
	case isBlock(p.in):
		way = e.wholeLines(way)
	case p.index == 0:
		way.to = e.start(content[2])
	default:
		way.from = e.end(content[p.index-1])
	}
	return e.try(changed(e.Value, path, func(object map[string]any) { delete(object, path[len(path)-1]) }), []cut{way})
}

// changed is a copy of values in which the object around what a path names is another one.
func changed(value any, path []string, change func(map[string]any)) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	object = maps.Clone(object)
	if len(path) == 1 {
		change(object)
	} else {
		object[path[0]] = changed(object[path[0]], path[1:], change)
	}
	return object
}

// cut puts a text in place of some bytes.
type cut struct {
	from, to int
	text     string
}

// try makes the first change after which the text has exactly these values.
func (e *Edit) try(want any, ways []cut) (*Edit, error) {
	for _, c := range ways {
		if c.to < c.from || c.to > len(e.Raw) {
			continue
		}
		if bytes.Contains(e.Raw, []byte("\r\n")) {
			c.text = strings.ReplaceAll(c.text, "\n", "\r\n")
		}
		next, err := NewEdit(e.File, slices.Concat(e.Raw[:c.from], []byte(c.text), e.Raw[c.to:]))
		if err == nil && reflect.DeepEqual(next.Value, want) {
			return next, nil
		}
	}
	return nil, onlyInText()
}
