package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Step is a node's end, or one of its tries' or items', as a Host keeps it. Address and Try
// name it: there is one for each pair.
//
// An address is the path of nodes from the root: `review` is the first visit of a node,
// `review#2` its second one, `read/texts` a branch, `read/texts[3]` an item of a map, from 0,
// `research/plan` a node of a sub-flow. `review#2=` is none of these: what a rerun was told to
// set before that node.
type Step struct {
	Address string
	Try     int // from 1
	State   StepState
	Run     string // the id of the run that it called; "": it called none
	Cached  bool   // Run is an earlier one, which was taken again
	Action  string // by which the walk goes on; "" of a try that is followed by another one, and of an item
	// Delta is what it set in the state of its scope: an object. Value is what it gives to the
	// map or the branches around it. Both are in the form of Encode; nil: nothing.
	Delta, Value json.RawMessage `json:",omitempty"`
	Failure      *Failure        // nil: it succeeded; also set where a fallback took its place
	Until        time.Time       // when the next try begins, or a wait or a question ends; zero: nothing to wait for
	Began, Ended time.Time       // Ended is zero while it is open
}

// ofFlowItself reports whether an address is that of a node of the flow itself, or of an item there:
// it is in no sub-flow, and no branch.
func ofFlowItself(address string) bool { return !strings.Contains(address, "/") }

// Final reports whether the step is the end of its node, item or branch. A try that is followed
// by another one is none: it has failed, and Until is when the next one begins.
func (s Step) Final() bool { return s.State != Open && s.Until.IsZero() }

// StepState is how a step stands.
type StepState string

// The states of a step.
const (
	Open    StepState = "open" // it waits: for a time, an answer, or its next try
	Done    StepState = "done"
	Failed  StepState = "failed"
	Skipped StepState = "skipped"
)

// Failure is why a node failed: what expressions see as `error`.
type Failure struct {
	Node     string          `json:"node"` // its address
	Category string          `json:"category,omitempty"`
	Kind     string          `json:"kind"`
	Type     string          `json:"type,omitempty"` // of the exception
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}

// The kinds of failure that a walk itself knows.
const (
	KindMaxSteps   = "max_steps"
	KindNoRoute    = "no_route"
	KindExpression = "expression"
	KindStateLimit = "state_limit"
	KindTimeout    = "timeout"
	KindTolerance  = "tolerance" // more items failed than a map bears
	KindTooMany    = "too_many_items"
	KindExhausted  = "exhausted" // a node was visited as often as it may
	KindTooDeep    = "too_deep"  // an address is longer than MaxAddress
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
