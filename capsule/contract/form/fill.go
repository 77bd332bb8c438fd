package form

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// MostIndented bounds the bytes that Fill adds to JSON for people to read it: line breaks and spaces.
const MostIndented = 64 << 10

// Fill returns the controls of a form with an input in them: of an earlier run, or none. What no control can
// show stands in a box for JSON: fields that the form doesn't have, values of another type, long lists. A
// text that isn't JSON stands in the box of the whole.
func Fill(f *Field, input []byte) *Control {
	c := empty(f, "")
	if len(bytes.TrimSpace(input)) == 0 {
		return c
	}
	if strictjson.Check(input, strictjson.Rules{}) != nil {
		c.JSON = string(input)
		return c
	}
	x := filler{left: maxControls, room: MostIndented}
	x.fill(c, bytes.TrimSpace(input))
	return c
}

type filler struct {
	left int // controls that rows may still have
	room int // bytes that JSON may still be indented by
}

func (x *filler) fill(c *Control, value []byte) {
	switch {
	case c.Kind == Object && value[0] == '{':
		x.object(c, value)
	case c.Kind == List && value[0] == '[':
		x.list(c, value)
	case string(value) == "null" && c.Required && c.Nullable: // as nothing is
		return
	default:
		if text, fits := textOf(c.Field, value); fits {
			c.Text = text
		} else {
			c.JSON = x.indented(value)
		}
	}
	if c.blank() && (!c.Required || c.Nullable) {
		c.JSON = string(value) // an empty object or list, which is more than nothing
	}
}

func (x *filler) object(c *Control, value []byte) {
	parts := make(map[string]*Control, len(c.Parts))
	for _, part := range c.Parts {
		parts[part.Key] = part
	}
	var rest members
	for name, value := range strictjson.Members(value) {
		if part := parts[name]; part != nil {
			x.fill(part, value)
		} else {
			rest.add(name, value)
		}
	}
	if len(rest) > 0 {
		c.JSON = x.indented(rest.object())
	}
}

func (x *filler) list(c *Control, value []byte) {
	rows := 0
	for range strictjson.Elements(value) {
		rows++
	}
	controls := rows * c.Item.controls()
	if rows > maxRows || controls > x.left {
		c.JSON = x.indented(value)
		return
	}
	x.left -= controls
	for value := range strictjson.Elements(value) {
		x.fill(c.addAt(len(c.Parts)), value)
	}
}

// textOf returns how a value stands in a control, and whether it can: posted again it has to be the same.
func textOf(f *Field, value []byte) (text string, fits bool) {
	first, isText := value[0], value[0] == '"'
	if isText {
		text = strictjson.Text(value)
	} else {
		text = string(value)
	}
	switch f.Kind {
	case Number, Integer:
		return text, first == '-' || first >= '0' && first <= '9'
	case Boolean:
		return text, first == 't' || first == 'f'
	case Enum:
		return choiceOf(f, value)
	case Text, File, Time:
		return text, isText && postable(text, f.Kind == Text)
	case DateTime:
		return text, isText && postable(text, false)
	case Date: // a browser shows nothing else in its control
		day, err := time.Parse(time.DateOnly, text)
		return text, isText && err == nil && day.Year() > 0
	}
	return "", false
}

func choiceOf(f *Field, value []byte) (text string, fits bool) {
	if value[0] == '"' { // which may be written in many ways
		value, _ = strictjson.Encode(strictjson.Text(value)) // a string can be written
	}
	for _, choice := range f.Choices {
		if choice.Value == string(value) {
			return choice.Value, true
		}
	}
	return "", false
}

// postable reports whether a browser posts the text as it is.
func postable(text string, lines bool) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return unicode.IsControl(c) && c != '\t' && (c != '\n' || !lines)
	})
}

// indented writes JSON with line breaks, while there is room for them: of deep lists they are a hundred times as much.
func (x *filler) indented(value []byte) string {
	var b bytes.Buffer
	if len(value) > x.room || json.Indent(&b, value, "", "  ") != nil || b.Len()-len(value) > x.room {
		return string(value)
	}
	x.room -= b.Len() - len(value)
	return b.String()
}

// members are the fields of an object as they are written: `"name":value`.
type members [][]byte

func (m *members) add(name string, value []byte) {
	key, _ := strictjson.Encode(name) // a string can be written
	*m = append(*m, append(append(key, ':'), value...))
}

func (m members) object() []byte {
	return append(append([]byte{'{'}, bytes.Join(m, []byte{','})...), '}')
}
