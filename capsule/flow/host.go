package flow

import (
	"context"
	"encoding/json"
	"time"
)

// Host does for a walk what the walk can't do. Its methods may be called at the same time.
// Where its process has to stop, it returns an error that isn't a *CallError: the walk ends
// with that at once and keeps nothing more.
type Host interface {
	// Call runs a unit and returns when that has ended. A call whose Key was used before joins
	// that one. The error of a call that was refused or has failed is a *CallError. When ctx
	// ends, the call is cancelled, and the error is the cause.
	Call(ctx context.Context, c Call) (Result, error)
	// Keep stores a step, in place of one of the same address and try. It is safe when Keep
	// returns.
	Keep(ctx context.Context, s Step) error
	// Items tells how many items a map has, before the first of them begins. Nothing of it has
	// to be kept.
	Items(address string, items int)
	// Ask opens a question, or finds it as it was opened, and returns its answer. When ctx ends
	// it is open no more, and the error is the cause; an answer that was stored before that is
	// returned all the same. The error of a question that nobody can be asked is a *CallError.
	// A host needn't wait for the answer to a question that is Alone: it may return an error, and
	// have the flow walked again when there is something to hear.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Call is a run of a unit that a node asks for.
type Call struct {
	Address string
	Try     int
	Key     string // of the address and the try
	Unit    string
	Input   map[string]any // JSON values, and Files
	Cache   time.Duration  // a success that is younger may be taken again; 0: none
}

// Result is a run that has succeeded.
type Result struct {
	Run    string // its id
	Output any    // JSON values, and Files where the unit's contract has files
	Cached bool
	Action string // the last one of its walk, where the unit is a flow
}

// CallError is why a call gave nothing.
type CallError struct {
	Run     string // "": it never began
	Refused bool   // by a rule: another try can't help
	Failure Failure
}

// Error implements error.
func (e *CallError) Error() string { return e.Failure.Message }

// Question is what a node asks a person.
type Question struct {
	Address string
	Text    string
	Show    map[string]any  // JSON values, and Files
	Form    json.RawMessage // the schema of what is filled in; nil: nothing is
	Answers []string
	// Approvers alone may answer; nil: who may see the run.
	Approvers []string
	Until     time.Time // zero: without an end
	Alone     bool      // nothing else of the walk goes on while it is open
}

// Answer is a person's answer.
type Answer struct {
	Action string // one of the question's
	Form   map[string]any
	By     string // who answered; "": not said
	Note   string
	At     time.Time
}
