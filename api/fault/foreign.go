package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Foreign is a part of a message that came out of a payload, such as the name of a field
// that no contract has, in the words in which it stands in the message. Where nothing of
// a payload may be told, it can be found and taken out.
type Foreign string

// Foreignf formats a finding's message, and returns the last part of it that is Foreign.
func Foreignf(format string, args ...any) (message, foreign string) {
	message = fmt.Sprintf(format, args...)
	if parts := foreignIn(args); len(parts) > 0 {
		foreign = parts[len(parts)-1]
	}
	return message, foreign
}

func foreignIn(args []any) []string {
	var parts []string
	for _, arg := range args {
		if part, ok := arg.(Foreign); ok {
			parts = append(parts, string(part))
		}
	}
	return parts
}

// Without returns a copy of the error in which "*" stands for each part that came out of
// a payload, unless keep is true of it. Pointers of findings stay as they are; nothing is
// marked as foreign any more.
func (e *Error) Without(keep func(foreign string) bool) *Error {
	told := *e
	told.Msg, told.Hint = without(e.Msg, keep, e.Foreign...), without(e.Hint, keep, e.Foreign...)
	told.Foreign, told.Findings = nil, slices.Clone(e.Findings)
	for i, f := range told.Findings {
		f.Message, f.Hint = without(f.Message, keep, f.Foreign), without(f.Hint, keep, f.Foreign)
		f.Foreign = ""
		told.Findings[i] = f
	}
	return &told
}

func without(text string, keep func(string) bool, parts ...string) string {
	for _, part := range parts {
		if part != "" && !keep(part) {
			text = strings.ReplaceAll(text, part, `"*"`)
		}
	}
	return text
}
