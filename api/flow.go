package api

import (
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// FlowCounts are the steps of a flow's run, counted.
type FlowCounts struct {
	Steps  int    `json:"steps"`            // that are kept
	Failed int    `json:"failed"`           // of them, also where the flow went on
	Open   int    `json:"open"`             // of them: they wait for a time, an answer or another try
	Action string `json:"action,omitempty"` // of the last node, when the flow has ended
}

// UnitFlow is a flow as it was written, and what is to be said about it.
type UnitFlow struct {
	Unit     string          `json:"unit"`
	Version  string          `json:"version,omitempty"` // "": the newest state, which can't be run
	Text     string          `json:"text"`              // of flow.yaml
	Graph    json.RawMessage `json:"graph,omitempty"`   // the same as JSON; nil: it can't be run
	Findings []fault.Finding `json:"findings"`          // in the unit's files, at their lines
}

// Step is a step of a flow's run, without its values: the end of a node, or of one of its
// tries or items, or what waits. Address and Try name it.
type Step struct {
	Seq     int64      `json:"seq"`     // it grows with each change of a step
	Address string     `json:"address"` // such as review#2, read/texts[3], research/plan
	Try     int        `json:"try"`
	State   StepState  `json:"state"`
	Run     string     `json:"run,omitempty"` // that it called
	Cached  bool       `json:"cached,omitempty"`
	Action  string     `json:"action,omitempty"`
	Error   *StepError `json:"error,omitempty"`
	Until   *time.Time `json:"until,omitempty"` // when what it waits for comes
	Began   time.Time  `json:"began"`
	Ended   *time.Time `json:"ended"` // nil while it is open
}

// StepState is how a step stands.
type StepState string

// The states of a step.
const (
	OpenStep    StepState = "open"
	DoneStep    StepState = "done"
	FailedStep  StepState = "failed"
	SkippedStep StepState = "skipped"
)

// StepError is why a node failed.
type StepError struct {
	Node     string          `json:"node"` // its address
	Category string          `json:"category,omitempty"`
	Kind     string          `json:"kind"`
	Type     string          `json:"type,omitempty"`
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}

// StepPage is a part of the steps of a run, in the order of their last changes.
type StepPage struct {
	Steps []Step `json:"steps"`
	Next  *int64 `json:"next"` // the Seq after which there are more; nil: that was the last
}

// FlowState is the state of a flow's run: what its nodes have set so far. A file in it is
// {"$file": {"name", "size_bytes", "sha256"}}.
type FlowState struct {
	State json.RawMessage `json:"state"`
	Files []File          `json:"files"` // those in it, each under a name of its own
}

// Question is what a run asks people.
type Question struct {
	ID      string          `json:"id"`
	Run     string          `json:"run"`
	Unit    string          `json:"unit"`           // the run's
	Address string          `json:"address"`        // of the node that asks; of a program its key
	Kind    QuestionKind    `json:"kind,omitempty"` // "": a node of a flow asks
	Text    string          `json:"text"`
	Show    json.RawMessage `json:"show,omitempty"` // values and files to look at, as in a FlowState
	Form    json.RawMessage `json:"form,omitempty"` // the schema of what is filled in
	Answers []string        `json:"answers"`
	Files   []File          `json:"files,omitempty"` // that it shows, each under a name of its own
	// who alone may answer, see CheckApprovers; nil: who may see the run
	Approvers []string   `json:"approvers,omitempty"`
	MayAnswer bool       `json:"may_answer"` // whoever asks for it may answer it, as long as it is open
	Until     *time.Time `json:"until"`      // nil: without an end
	AskedAt   time.Time  `json:"asked_at"`
	// nil: nobody has answered it
	Answered *Answered `json:"answered,omitempty"`
	// when nobody could answer it any more, because its time was up or its run had ended; nil: it isn't closed
	ClosedAt *time.Time `json:"closed_at,omitempty"`
}

// IsForOthers reports whether whoever asked for a question may not answer it because others are named for that.
func (q Question) IsForOthers() bool { return len(q.Approvers) > 0 && !q.MayAnswer }

// QuestionKind is what a question is about.
type QuestionKind string

// The kinds of question of programs.
const (
	QuestionInput    QuestionKind = "input"    // something that the program needs to know
	QuestionApproval QuestionKind = "approval" // whether it may go on with something
	QuestionAuth     QuestionKind = "auth"     // whether somebody has given it access elsewhere
)

// OpenQuestion is what a record tells of a question that is open.
type OpenQuestion struct {
	ID    string       `json:"id"`
	Kind  QuestionKind `json:"kind,omitempty"` // "": a node of a flow asks
	Until *time.Time   `json:"until"`          // nil: without an end
}

// QuestionState is how a question stands.
type QuestionState string

// The states of a question.
const (
	QuestionOpen     QuestionState = "open"
	QuestionAnswered QuestionState = "answered"
	QuestionClosed   QuestionState = "closed" // its time was up, or its run has ended
)

// QuestionPage is a part of the open questions, the oldest first.
type QuestionPage struct {
	Questions []Question `json:"questions"`
	Next      *int64     `json:"next"` // after which there are more; nil: that was the last
}

// Answered is the answer that a question has, and who gave it.
type Answered struct {
	Action string          `json:"action"`
	Form   json.RawMessage `json:"form,omitempty"`
	By     string          `json:"by,omitempty"`    // as whoever answered said: nobody has looked at it
	Token  string          `json:"token,omitempty"` // the name of the token with which it was given; "": it has none
	Note   string          `json:"note,omitempty"`
	At     time.Time       `json:"at"`
}

// Answer is a person's answer to a question.
type Answer struct {
	Action string          `json:"action"`         // one of the question's answers
	Form   json.RawMessage `json:"form,omitempty"` // an object that keeps its schema
	By     string          `json:"by,omitempty"`   // who answers, as they say; at most 200 bytes
	Note   string          `json:"note,omitempty"` // at most 4 KiB
}
