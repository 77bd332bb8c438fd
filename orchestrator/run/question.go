package run

import (
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
	Until   time.Time       // when it is open no more; zero: without an end
	Alone   bool            // the attempt does nothing else while it is open: it may end meanwhile, see Asks
}

// Answer is a person's answer.
type Answer struct {
	Action string         // one of the question's answers
	Form   map[string]any // what was filled in, as package flow has values
	By     string         // who answered; "": not said
	Note   string
	At     time.Time
}

// Asks is the error of an attempt that holds nothing and does nothing but wait for people. It is
// resumed when there is something to hear.
type Asks struct {
	Question string    // its id
	Until    time.Time // when the attempt has to be resumed without an answer
}

// Error implements error.
func (*Asks) Error() string { return "it waits for an answer" }

// Denied is the error of a question that nobody has answered: nobody is there, or its time
// was up.
type Denied struct {
	Reason string
	Hint   string // "": none
}

// Error implements error.
func (d *Denied) Error() string { return d.Reason }
