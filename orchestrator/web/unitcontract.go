package web

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/contract/form"
)

// contractRow is a field of a contract, as a table shows it.
type contractRow struct {
	*form.Field
	Path string // such as address.street, or files[].name
}

// mostContractRows is how many fields of a contract a table shows.
const mostContractRows = 200

// contractRows are the fields of a side of a contract, with those in them.
func contractRows(of *contract.Schema) (rows []contractRow) {
	if of == nil {
		return nil
	}
	whole := of.Form()
	if whole.Kind != form.Object {
		return []contractRow{{whole, "(all of it)"}}
	}
	return rowsBelow(nil, whole, "")
}

func rowsBelow(rows []contractRow, f *form.Field, path string) []contractRow {
	for _, part := range f.Fields {
		if len(rows) == mostContractRows {
			return rows
		}
		at := path + part.Key
		rows = append(rows, contractRow{part, at})
		within, lists := part, 0
		for ; within.Item != nil; within = within.Item {
			lists++
		}
		rows = rowsBelow(rows, within, at+strings.Repeat("[]", lists)+".")
	}
	return rows
}

// Type is what kind of value the field has, in words.
func (r contractRow) Type() string { return typeOf(r.Field, "") }

// typeOf names a kind of value: one, or many with an "s".
func typeOf(f *form.Field, s string) string {
	switch f.Kind {
	case form.List:
		return "list" + s + " of " + typeOf(f.Item, "s")
	case form.Integer:
		return "whole number" + s
	case form.Boolean:
		return "yes or no"
	case form.Enum:
		return choiceText(f)
	case form.DateTime:
		return "date" + s + " with time"
	case form.JSON:
		return "JSON"
	}
	return string(f.Kind) + s
}

// choiceText lists the choices of a field, if they are few.
func choiceText(f *form.Field) string {
	const few = 8
	if len(f.Choices) > few {
		return "one of " + strconv.Itoa(len(f.Choices)) + " values"
	}
	var labels []string
	for _, c := range f.Choices {
		labels = append(labels, c.Label)
	}
	return "one of " + strings.Join(labels, ", ")
}

// Default is what the unit takes where nothing is given; "": the contract doesn't say.
func (r contractRow) Default() string { return defaultOf(r.Field) }

// Bounds are those of the field, in words.
func (r contractRow) Bounds() string { return strings.Join(boundsOf(r.Field), ", ") }

// defaultOf is a field's default as people read it.
func defaultOf(f *form.Field) string {
	if f.Kind == form.Boolean {
		return map[string]string{"true": "yes", "false": "no"}[f.Default]
	}
	for _, c := range f.Choices {
		if c.Value == f.Default {
			return c.Label
		}
	}
	return f.Default
}

// boundsOf are the bounds of a field, each in words. A pattern isn't among them.
func boundsOf(f *form.Field) []string {
	b := f.Bounds
	all := []string{
		between(b.Minimum, b.Maximum, ""), between(b.MinLength, b.MaxLength, " characters"),
		between(b.MinItems, b.MaxItems, itemsOf(f)), with("more than ", b.ExclusiveMinimum),
		with("less than ", b.ExclusiveMaximum), with("a multiple of ", b.MultipleOf),
	}
	if f.Format != "" && f.Kind == form.Text {
		all = append(all, f.Format)
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

func itemsOf(f *form.Field) string {
	if f.Item != nil && f.Item.Kind == form.File {
		return " files"
	}
	return ""
}

func with(words string, n json.Number) string {
	if n == "" {
		return ""
	}
	return words + n.String()
}

// between tells a least and a most value, of which there may be none.
func between(least, most json.Number, unit string) string {
	text := ""
	switch {
	case least != "" && most == least:
		text = "exactly " + least.String()
	case least != "" && least != "0" && most != "", least != "" && most != "" && unit == "":
		text = least.String() + " to " + most.String()
	case most != "":
		text = "at most " + most.String()
	case least != "" && (least != "0" || unit == ""):
		text = "at least " + least.String()
	}
	if text == "" {
		return ""
	}
	if text += unit; strings.HasSuffix(text, " 1"+unit) {
		text = strings.TrimSuffix(text, "s")
	}
	return text
}
