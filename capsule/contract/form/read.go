package form

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

const (
	// MaxValues bounds what is posted: each control of a form, and the box for JSON beside it.
	MaxValues = 10_000
	// maxParts bounds the parts of a name.
	maxParts = 32
	// maxUnknown bounds the findings about names that the form doesn't have.
	maxUnknown = 20
)

// Posted is what a browser sends: values by the names of their controls, and the names that the files have in
// the input. What is named neither like a control nor like its box for JSON is of the page, and ignored.
type Posted struct{ Values, Files map[string][]string }

// Read makes an input of what was posted: fields in the order of the form, numbers as they were typed. It
// returns the controls as well, rows of lists closed up, and what can't be read; the input lacks that.
func Read(f *Field, p Posted) (c *Control, input json.RawMessage, found []fault.Finding) {
	root, ok := sorted(p)
	if !ok {
		return empty(f, ""), json.RawMessage("{}"), []fault.Finding{{
			Message: fmt.Sprintf("the form has more than %d values", MaxValues),
			Hint:    "write the long lists as JSON, or put the data in a file",
		}}
	}
	r := reader{left: maxControls}
	c = r.control(f, "", root)
	r.unknown(root, "")
	w := writer{findings: r.findings}
	if input = w.value(c); input == nil {
		input = json.RawMessage("{}")
	}
	return c, input, w.findings
}

// values are what was posted for one pointer, and below it. What is read is taken out.
type values struct {
	texts, files []string
	json         string
	below        map[string]*values
}

// at returns the values for a pointer.
func (v *values) at(pointer string) *values {
	for _, key := range strictjson.Path(pointer) {
		if v.below == nil {
			v.below = map[string]*values{}
		}
		if v.below[key] == nil {
			v.below[key] = &values{}
		}
		v = v.below[key]
	}
	return v
}

// sorted puts the values where their names lead; ok is false if there are too many.
func sorted(p Posted) (root *values, ok bool) {
	root, count := &values{}, 0
	for name, texts := range p.Values {
		pointer, isJSON := strings.CutPrefix(name, "#")
		if !isControl(pointer, isJSON) || len(texts) == 0 {
			continue
		}
		if count += len(texts); count > MaxValues {
			return nil, false
		}
		if at := root.at(pointer); isJSON {
			at.json = strings.TrimSpace(asTyped(texts[0]))
		} else {
			at.texts = texts
		}
	}
	for name, files := range p.Files {
		if !isControl(name, false) {
			continue
		}
		if count += len(files); count > MaxValues {
			return nil, false
		}
		root.at(name).files = files
	}
	return root, true
}

// isControl reports whether a name can be that of a control. The whole has a box for JSON alone.
func isControl(pointer string, isJSON bool) bool {
	return strings.HasPrefix(pointer, "/") && strings.Count(pointer, "/") <= maxParts || isJSON && pointer == ""
}

type reader struct {
	left      int // controls that rows may still have
	strangers int // values that no field takes
	findings  []fault.Finding
}

func (r *reader) fail(pointer, message, hint string) {
	r.findings = append(r.findings, fault.Finding{Pointer: pointer, Message: message, Hint: hint})
}

func (r *reader) control(f *Field, pointer string, posted *values) *Control {
	c := &Control{Field: f, Pointer: pointer, JSON: posted.json}
	posted.json = ""
	switch f.Kind {
	case Object:
		for _, part := range f.Fields {
			c.Parts = append(c.Parts, r.control(part, below(pointer, part.Key), posted.under(part.Key)))
		}
	case List:
		r.rows(c, posted)
	case JSON:
	default:
		r.text(c, posted)
	}
	return c
}

// under returns what was posted for a part.
func (v *values) under(key string) *values {
	if part := v.below[key]; part != nil {
		return part
	}
	return &values{}
}

func (r *reader) text(c *Control, posted *values) {
	if len(posted.texts) > 0 {
		c.Text = asTyped(posted.texts[0])
	}
	posted.texts = nil
	if len(posted.files) == 0 || c.Kind != File && c.Kind != Text {
		return
	}
	if len(posted.files) > 1 {
		r.fail(c.Pointer, "takes one file only", "choose one file")
	}
	c.Text, posted.files = posted.files[0], nil
}

// asTyped undoes what browsers do to line breaks.
func asTyped(text string) string { return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text) }

// rows reads the items of a list: what was posted for each, then values and files for the list as a whole,
// as boxes that are ticked and a control for many files post them.
func (r *reader) rows(c *Control, posted *values) {
	first, full := c.boxed(), false
	add := func(item *values) {
		r.left -= c.Item.controls()
		if full = full || r.left < 0 || first+len(c.Parts) >= maxRows; full {
			return
		}
		row := r.control(c.Item, below(c.Pointer, strconv.Itoa(first+len(c.Parts))), item)
		if !row.blank() {
			c.Parts = append(c.Parts, row)
		}
	}
	for _, key := range indexes(posted.below) {
		add(posted.below[key])
	}
	for _, item := range posted.items(c.Item.Kind) {
		add(item)
	}
	if full {
		posted.below = nil
		r.fail(c.Pointer, "has more items than a form can hold", "write the list as JSON")
	}
}

// indexes returns the keys that are numbers of rows, in their order.
func indexes(of map[string]*values) []string {
	var list []int
	for key := range of {
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i <= maxRows && strconv.Itoa(i) == key {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	keys := make([]string, len(list))
	for i, index := range list {
		keys[i] = strconv.Itoa(index)
	}
	return keys
}

// items takes the values and the files that were posted for a list as a whole.
func (v *values) items(kind Kind) []*values {
	var list []*values
	if kind == List || kind == Object || kind == JSON {
		return nil
	}
	for _, text := range v.texts {
		list = append(list, &values{texts: []string{text}})
	}
	v.texts = nil
	if kind == File || kind == Text {
		for _, name := range v.files {
			list = append(list, &values{files: []string{name}})
		}
		v.files = nil
	}
	return list
}

// unknown reports what was posted and not read: the page is older than the contract.
func (r *reader) unknown(v *values, pointer string) {
	text := slices.ContainsFunc(v.texts, func(text string) bool { return text != "" })
	if r.strangers < maxUnknown && (text || v.json != "" || len(v.files) > 0) {
		r.strangers++
		r.fail(fault.Clip(pointer, strictjson.MaxPointerBytes), "the form doesn't take this value here",
			"the contract may have changed: load the page again")
	}
	for _, key := range slices.Sorted(maps.Keys(v.below)) {
		r.unknown(v.below[key], below(pointer, key))
	}
}
