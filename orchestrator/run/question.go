package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// Question is what a run asks people.
type Question struct {
	Address string           // names it within its run: under one address a run asks one thing
	Kind    api.QuestionKind // "": a node of a flow asks
	Text    string
	Show    json.RawMessage // an object of what is shown with it; nil: nothing
	Form    json.RawMessage // the schema of what is filled in; nil: nothing is
	Answers []string        // those that it takes, at least one
	// Approvers alone may answer, see api.CheckApprovers; nil: who may see the run.
	Approvers []string
	Until     time.Time // when it is open no more; zero: without an end
	Alone     bool      // the attempt does nothing else while it is open: it may be suspended meanwhile
}

// Answer is a person's answer.
type Answer struct {
	Action string         // one of the question's answers
	Form   map[string]any // what was filled in, as package flow has values
	By     string         // who answered; "": not said
	Note   string
	At     time.Time
}

// People answer the questions of runs.
type People interface {
	// Ask returns the answer to a question of a run. When ctx or the question's time ends, it is open no more; an
	// answer that was stored before counts. With ErrDetach as the cause it stays open for the next process. The error
	// is the cause of ctx's end, a *Denied, or a fault; of a question that is Alone it may be a *Suspended, which the
	// attempt has to return.
	Ask(ctx context.Context, r *Run, q Question) (Answer, error)
}

// Suspended is the error of an attempt that holds nothing and does nothing but wait, maybe for days. It is resumed
// when Wait has returned nil: when there is something to hear, or ctx has ended. Another error says that this process
// has to stop, or is a fault.
type Suspended struct {
	Wait func(ctx context.Context) error
}

// Error implements error.
func (*Suspended) Error() string { return "it waits" }

// OnFreshStack does something on a goroutine of its own and waits for it. JSON and SQLite need a deep
// stack, and a goroutine that waits for days keeps the deepest one that it ever needed.
func OnFreshStack(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
}

// Denied is the error of a question that nobody has answered: nobody is there, or its time
// was up.
type Denied struct {
	Reason string
	Hint   string // "": none
}

// Error implements error.
func (d *Denied) Error() string { return d.Reason }
