package strictjson

import (
	"fmt"
	"strconv"

	"github.com/agent-on-demand/aod/api/fault"
)

// MaxDepth is how many arrays and objects may lie within one another.
const MaxDepth = 64

// Limits on one name and one number of a document, unless the rules leave them out.
const (
	MaxNameBytes   = 4096
	MaxNumberBytes = 400
	maxExponent    = 400 // 1e1000000 takes seconds to compare
)

// Rules say what Check takes beyond what Decode takes.
type Rules struct {
	// Ambiguous takes what readers of JSON read differently: names that stand twice,
	// half surrogate pairs, numbers beyond a double.
	Ambiguous bool
	// Unbounded takes names and numbers of any length.
	Unbounded bool
	// Values is how many values the document may have, itself included; 0 is any number. Decode
	// makes up to 200 bytes of one that takes two.
	Values int
}

// Decode reads exactly one document in UTF-8. Objects are map[string]any, arrays []any,
// numbers json.Number in the text that they were given. How large the text may be is up
// to the caller; what is built takes a small multiple of it. An error is an *Error.
func Decode(data []byte) (any, error) {
	r := &reader{data: data, build: true}
	return r.document()
}

// Check does what Decode does under the rules, and builds nothing, so that a large
// document costs little more than its bytes. An error is an *Error.
func Check(data []byte, rules Rules) error {
	r := &reader{data: data, rules: rules}
	_, err := r.document()
	return err
}

// Problem is a way in which a text isn't a document that is taken.
type Problem uint8

// The problems.
const (
	Syntax           Problem = iota // no JSON, or more than one document
	ByteOrderMark                   // before the document
	NotUTF8                         // anywhere
	TooDeep                         // more than MaxDepth
	TooLong                         // a name or a number of too many bytes
	TooMany                         // more values than Rules.Values
	DuplicateName                   // in one object
	HalfSurrogate                   // in a string or a name
	NumberOutOfRange                // of a double
)

// Error says where a text stops being a document that is taken. Except for Name, and for
// the one character that stands where a syntax error is, it shows nothing of the text.
type Error struct {
	Problem      Problem
	Offset       int    // in bytes: where it was seen
	Start        int    // in bytes: where the string, number, array or object begins that it is in; else Offset
	Line, Column int    // of Offset, from 1; the column counts bytes
	Pointer      string // to the value that was being read
	Name         string // of a field that stands twice
	Hint         string // how to mend it; "" where that is plain

	text string
}

// Message says what is wrong, without the place. Where a field stands twice it has the
// field's name.
func (e *Error) Message() string {
	if e.Problem == DuplicateName {
		return fmt.Sprintf("the field %s stands twice in one object", e.Foreign())
	}
	return e.text
}

// Foreign is the part of Message that came out of the text, "" for none.
func (e *Error) Foreign() fault.Foreign {
	if e.Problem != DuplicateName {
		return ""
	}
	return fault.Foreign(quote(e.Name))
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message())
}

func (e *Error) withHint(hint string) *Error {
	e.Hint = hint
	return e
}

// maxQuotedBytes is how much a message shows of a name.
const maxQuotedBytes = 200

func quote(name string) string { return strconv.Quote(fault.Clip(name, maxQuotedBytes)) }
