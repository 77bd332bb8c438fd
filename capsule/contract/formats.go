package contract

import (
	"regexp/syntax"

	"github.com/xeipuuv/gojsonschema"
)

// formatBytes returns how many bytes of a string the check of a format takes for one step.
func formatBytes(name string) int {
	if name == "regex" {
		return 8 // the tree of an expression is a hundred times its text
	}
	return 128
}

// expression checks the format "regex". gojsonschema's own check compiles the expression:
// a short text can repeat a long one a thousand times, and compiling has no bound.
type expression struct{}

// IsFormat implements gojsonschema.FormatChecker.
func (expression) IsFormat(input any) bool {
	text, ok := input.(string)
	if !ok {
		return true // "format" is about strings
	}
	_, err := syntax.Parse(text, syntax.Perl)
	return err == nil
}

// The formats are global in gojsonschema. Only this package imports it.
func init() { gojsonschema.FormatCheckers.Add("regex", expression{}) }
