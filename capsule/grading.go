package capsule

import (
	"context"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// graded are what the expressions of a test case see.
var graded = []string{"input", "output"}

// Condition is the template of a condition, which is an expression.
func Condition(text string) string { return "${{ " + text + " }}" }

// parseGrading reads a value with expressions of a test case.
func parseGrading(value any, pointer string) (*expr.Template, []fault.Finding) {
	t, findings := expr.Source{}.Parse(value, pointer)
	for _, r := range t.References() {
		if !slices.Contains(graded, r.Path[0]) {
			findings = append(findings, fault.Finding{
				Pointer: r.Pointer, Message: "there is no " + fault.Quote(r.Path[0]),
				Hint: "expressions of a test case see input and output",
			})
		}
	}
	return t, findings
}

// Graded is a run that expressions of a test case look at.
type Graded struct{ vars expr.Vars }

// NewGraded reads the input and the output of a run, which are JSON.
func NewGraded(input, output []byte) (Graded, error) {
	g := Graded{expr.Vars{}}
	for i, raw := range [][]byte{input, output} {
		value, err := strictjson.Decode(raw)
		if err == nil {
			g.vars[graded[i]], err = expr.Values(value)
		}
		if err != nil {
			return g, err
		}
	}
	return g, nil
}

// Eval returns what a value with expressions is. The error is a Capsule fault, or the cause of ctx's end.
func (g Graded) Eval(ctx context.Context, value any) (any, error) {
	t, findings := parseGrading(value, "")
	if len(findings) > 0 {
		return nil, fault.New(fault.Capsule, "%s", findings[0].Message)
	}
	return t.Eval(ctx, g.vars)
}
