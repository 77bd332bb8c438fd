package form

import (
	"iter"
	"net/url"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

const (
	// maxRows bounds the items of a list that have controls of their own.
	maxRows = 1000
	// maxControls bounds the controls in the rows of a form: all of them can be posted.
	maxControls = 4000
	// mostLines is how many lines a control for a text has at most.
	mostLines = 20
)

// Control is a field with what stands in it.
type Control struct {
	*Field

	Pointer  string // of its value in the input, and the name of its control
	Text     string // what stands in the control: of an enum, the value of the choice. See Rows
	JSON     string // what stands in the box for JSON: all of the value, or what else an object or a list has
	Parts    []*Control
	Findings []fault.Finding
}

// empty returns the control of a field in which nothing stands.
func empty(f *Field, pointer string) *Control {
	c := &Control{Field: f, Pointer: pointer}
	for _, part := range f.Fields {
		c.Parts = append(c.Parts, empty(part, below(pointer, part.Key)))
	}
	return c
}

func below(pointer, key string) string { return pointer + "/" + strictjson.Escape(key) }

// JSONName is the name of the box for JSON.
func (c *Control) JSONName() string { return "#" + c.Pointer }

// ID is an id for HTML, which has no spaces.
func (c *Control) ID() string { return "f" + url.PathEscape(c.Pointer) }

// Boxed reports whether the box for JSON has to be shown.
func (c *Control) Boxed() bool { return c.Kind == JSON || c.More || c.JSON != "" }

// Rows is how many lines the control for the text should have, or the box for JSON where that is shown. A
// text that has more than one needs a textarea, with a line break before it: HTML swallows the first.
func (c *Control) Rows() int {
	return min(max(c.Lines, 1+strings.Count(c.Text+c.JSON, "\n")), mostLines)
}

// Add puts an empty row at the end of a list and returns it; nil means that a form can't hold more.
func (c *Control) Add() *Control {
	if c.Kind != List || c.boxed()+len(c.Parts) >= maxRows {
		return nil
	}
	return c.addAt(c.boxed() + len(c.Parts))
}

// boxed counts the items of a list that stand in the box: rows follow them.
func (c *Control) boxed() (count int) {
	for range strictjson.Elements([]byte(c.JSON)) {
		count++
	}
	return count
}

func (c *Control) addAt(index int) *Control {
	row := empty(c.Item, below(c.Pointer, strconv.Itoa(index)))
	c.Parts = append(c.Parts, row)
	return row
}

// All yields the control and all in it, in the order of the form.
func (c *Control) All() iter.Seq[*Control] {
	return func(yield func(*Control) bool) { c.each(yield) }
}

func (c *Control) each(yield func(*Control) bool) bool {
	if !yield(c) {
		return false
	}
	for _, part := range c.Parts {
		if !part.each(yield) {
			return false
		}
	}
	return true
}

// At returns the control of the value at a pointer, which starts at c, or the nearest one around it.
func (c *Control) At(pointer string) *Control {
	for _, key := range strictjson.Path(pointer) {
		next := c.part(key)
		if next == nil {
			break
		}
		c = next
	}
	return c
}

func (c *Control) part(key string) *Control {
	pointer := below(c.Pointer, key)
	for _, part := range c.Parts {
		if part.Pointer == pointer {
			return part
		}
	}
	return nil
}

// blank reports whether nothing stands in the control.
func (c *Control) blank() bool {
	if c.Text != "" || c.JSON != "" {
		return false
	}
	for _, part := range c.Parts {
		if !part.blank() {
			return false
		}
	}
	return true
}

// nothing is the JSON that stands for an empty control, nil for none.
func (c *Control) nothing() []byte {
	switch {
	case !c.Required:
	case c.Nullable:
		return []byte("null")
	case c.Kind == Object:
		var all members
		for _, part := range c.Parts {
			if value := part.nothing(); value != nil {
				all.add(part.Key, value)
			}
		}
		return all.object()
	case c.Kind == List:
		return []byte("[]")
	}
	return nil
}
