package flow

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-on-demand/aod/api/fault"
)

// The categories of what fails in a walk itself, as in the record of a run.
const (
	transient = "Transient"
	permanent = "Permanent"
)

// failing is a Failure on its way to the node that can do something about it. Every other
// error in a walk ends the walk.
type failing struct {
	Failure
	refused bool // by a rule: another try can't help
}

// Error implements error.
func (f *failing) Error() string { return f.Node + ": " + f.Message }

func failed(address, kind, format string, args ...any) *failing {
	return &failing{Failure: Failure{
		Node: address, Category: permanent, Kind: kind,
		Message: fmt.Sprintf(format, args...),
	}}
}

func (f *failing) withHint(format string, args ...any) *failing {
	f.Hint = fmt.Sprintf(format, args...)
	return f
}

// failureIn returns the Failure that an error is, or nil where it ends the walk.
func failureIn(err error) *Failure {
	var f *failing
	if errors.As(err, &f) {
		return &f.Failure
	}
	return nil
}

// badExpression is the error of an expression that gave none of what was expected, or the
// cause of ctx's end.
func badExpression(ctx context.Context, address string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	public := fault.Public(err)
	f := failed(address, KindExpression, "%s", public.Msg)
	f.Hint, f.Findings = public.Hint, public.Findings
	return f
}

// timeUp is the cause with which a time limit of a node ends a context.
type timeUp struct{ address string }

// Error implements error.
func (t *timeUp) Error() string { return t.address + ": its time was up" }
