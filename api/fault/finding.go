package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is one violation: where it is, what is wrong, how to mend it.
type Finding struct {
	File    string `json:"file,omitempty"`    // relative to the capsule's directory
	Line    int    `json:"line,omitempty"`    // from 1; 0 where only a pointer is known
	Pointer string `json:"pointer,omitempty"` // RFC 6901; "" is the whole document
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Warning bool   `json:"warning,omitempty"` // worth knowing, stops nothing
	Foreign string `json:"-"`                 // the part of Message that came out of a payload; "" is none
}

// Where returns the place as a person reads it: "agent.yaml:3", "schema.json#/input",
// "/name" or, for a whole document without a file, "(root)".
func (f Finding) Where() string {
	switch {
	case f.Line > 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	case f.File != "" && f.Pointer != "":
		return f.File + "#" + f.Pointer
	case f.File != "":
		return f.File
	case f.Pointer != "":
		return f.Pointer
	}
	return "(root)"
}

func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.Where() + ": " + f.Message)
	if f.Hint != "" {
		b.WriteString(" (" + f.Hint + ")")
	}
	return b.String()
}

// Errors returns the findings that are not warnings.
func Errors(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Warning })
}
