package form

import "encoding/json"

// Kind says what stands in a field.
type Kind string

// The kinds.
const (
	Text     Kind = "text"
	Number   Kind = "number"
	Integer  Kind = "integer"
	Boolean  Kind = "boolean" // "true", "false", or nothing
	Enum     Kind = "enum"    // one of Choices
	Date     Kind = "date"
	Time     Kind = "time"      // with its zone: a browser's own control for it has none
	DateTime Kind = "date-time" // likewise
	File     Kind = "file"      // the name of a file
	List     Kind = "list"      // of Item
	Object   Kind = "object"    // of Fields
	JSON     Kind = "json"      // what no other kind can say
)

// Field describes a part of an input: one value, or all that an object or a list holds.
type Field struct {
	Key         string // its name in the object around it; "" for the whole, and for an item
	Label       string // its title, else its name
	Description string
	Kind        Kind
	Required    bool
	Nullable    bool // null may stand in its place

	Default string // as it would stand in the control: told to people, AOD doesn't fill it in
	Example string // likewise
	Format  string // of a text, such as "email"
	Pattern string // of a text, as its author wrote it: an expression that matches anywhere in it
	Lines   int    // of a text: how many the control should have
	Bounds  Bounds
	Choices []Choice

	Fields []*Field // of an object, in its author's order
	More   bool     // the contract speaks of fields of an object beside those: they are given as JSON
	Item   *Field   // of a list
	Schema string   // of what is given as JSON: as its author wrote it, and cut where it is long
}

// Bounds are the numbers of a contract as they were written, "" where there is none.
type Bounds struct {
	Minimum, Maximum                   json.Number
	ExclusiveMinimum, ExclusiveMaximum json.Number
	MultipleOf                         json.Number
	MinLength, MaxLength               json.Number // of a text, in characters: a browser counts UTF-16
	MinItems, MaxItems                 json.Number // of a list
}

// Choice is one of the values that a field may have.
type Choice struct {
	Label string
	Value string // JSON: what the control posts
}

// controls counts the controls that an empty field has.
func (f *Field) controls() int {
	count := 1
	for _, part := range f.Fields {
		count += part.controls()
	}
	return count
}
