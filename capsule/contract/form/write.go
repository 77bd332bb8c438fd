package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// writer writes what stands in controls as JSON. What can't be read is left out, and reported.
type writer struct{ findings []fault.Finding }

func (w *writer) fail(c *Control, message, hint string) {
	w.findings = append(w.findings, fault.Finding{Pointer: c.Pointer, Message: message, Hint: hint})
}

func (w *writer) twice(c *Control) {
	w.fail(c, "is given twice: in its field and as JSON", "empty one of the two")
}

// value returns the compact JSON of a control, nil where nothing is given.
func (w *writer) value(c *Control) []byte {
	if c.blank() {
		return c.nothing()
	}
	own := w.own(c)
	switch {
	case c.Kind == Object && (own == nil || own[0] == '{'):
		return w.object(c, own)
	case c.Kind == List && (own == nil || own[0] == '['):
		return w.list(c, own)
	}
	if c.Text != "" || slices.ContainsFunc(c.Parts, func(part *Control) bool { return !part.blank() }) {
		if c.JSON != "" {
			w.twice(c)
			return nil
		}
		return w.text(c)
	}
	return own
}

// own reads the box for JSON.
func (w *writer) own(c *Control) []byte {
	if c.JSON == "" {
		return nil
	}
	err := strictjson.Check([]byte(c.JSON), strictjson.Rules{})
	if bad := (*strictjson.Error)(nil); errors.As(err, &bad) {
		message, foreign := "isn't valid JSON: "+bad.Error(), string(bad.Foreign())
		w.findings = append(w.findings, fault.Finding{
			Pointer: c.Pointer, Message: message, Hint: bad.Hint, Foreign: foreign,
		})
		return nil
	}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(c.JSON)) != nil {
		return nil // it was checked
	}
	return compact.Bytes()
}

// object joins the fields of a form with those that stand in the box.
func (w *writer) object(c *Control, own []byte) []byte {
	rest := map[string]bool{}
	for name := range strictjson.Members(own) {
		rest[name] = true
	}
	var all members
	for _, part := range c.Parts {
		switch {
		case rest[part.Key] && part.blank():
		case rest[part.Key]:
			w.twice(part)
		default:
			if value := w.value(part); value != nil {
				all.add(part.Key, value)
			}
		}
	}
	for name, value := range strictjson.Members(own) {
		all.add(name, value)
	}
	return all.object()
}

// list puts the rows after what stands in the box.
func (w *writer) list(c *Control, own []byte) []byte {
	var items [][]byte
	for item := range strictjson.Elements(own) {
		items = append(items, item)
	}
	for _, row := range c.Parts {
		if value := w.value(row); value != nil {
			items = append(items, value)
		}
	}
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

// text reads what stands in the control itself.
func (w *writer) text(c *Control) []byte {
	if !utf8.ValidString(c.Text) {
		w.fail(c, "isn't valid UTF-8", "type the text anew")
		return nil
	}
	switch c.Kind {
	case Number, Integer:
		return w.number(c)
	case Boolean:
		if c.Text != "true" && c.Text != "false" {
			w.fail(c, "isn't yes or no", "choose one of them, or none")
			return nil
		}
		return []byte(c.Text)
	case Enum:
		if strictjson.Check([]byte(c.Text), strictjson.Rules{}) != nil {
			w.fail(c, "isn't one of the choices", "choose one of them")
			return nil
		}
		return []byte(c.Text)
	}
	text, _ := strictjson.Encode(c.Text) // a string can be written
	return text
}

// number takes a number as it was typed.
func (w *writer) number(c *Control) []byte {
	text := strings.TrimSpace(c.Text)
	value, err := strictjson.Decode([]byte(text))
	bad := (*strictjson.Error)(nil)
	switch _, isNumber := value.(json.Number); {
	case isNumber:
		return []byte(text)
	case errors.As(err, &bad) && (bad.Problem == strictjson.NumberOutOfRange || bad.Problem == strictjson.TooLong):
		w.fail(c, "isn't a number that can be used: "+bad.Message(), bad.Hint)
	case c.Kind == Integer:
		w.fail(c, "isn't a whole number", "write digits alone, such as 3")
	default:
		w.fail(c, "isn't a number", "write digits, with a point before the fraction, such as 1.5")
	}
	return nil
}
