package strictjson

import (
	"bytes"
	"fmt"

	"github.com/agent-on-demand/aod/api/fault"
)

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

func (r *reader) fail(problem Problem, at int, format string, args ...any) *Error {
	before := r.data[:min(at, len(r.data))]
	return &Error{
		Problem: problem, Offset: at, Start: at,
		Line:    bytes.Count(before, []byte("\n")) + 1,
		Column:  len(before) - bytes.LastIndexByte(before, '\n'),
		Pointer: r.pointer(),
		text:    fmt.Sprintf(format, args...),
	}
}
