package api

import (
	"encoding/json"
	"time"
)

// SessionState says whether a session takes another turn.
type SessionState string

// The states of a session.
const (
	SessionOpen   SessionState = "open"   // it waits for its next turn
	SessionBusy   SessionState = "busy"   // a turn is going on or waits for its own; another one waits behind it
	SessionClosed SessionState = "closed" // there will be no further turn
)

// Session is a conversation with a unit: each of its turns is a run
// (schemas/openapi.json, "Session").
type Session struct {
	ID        string       `json:"id"`
	Unit      string       `json:"unit"`
	Version   string       `json:"version"`         // of the unit, with which it stays
	By        string       `json:"by,omitempty"`    // the name of the token with which it was made; "": it has none
	Owner     *Owner       `json:"owner,omitempty"` // nil: of DefaultTeam
	State     SessionState `json:"state"`
	Reason    string       `json:"reason,omitempty"` // why it is closed
	Turns     int          `json:"turns"`            // how many it has had, with those that wait
	Live      bool         `json:"live,omitempty"`   // a container lives on between its turns
	CreatedAt time.Time    `json:"created_at"`
	UsedAt    time.Time    `json:"used_at"` // when its last turn was accepted, or had its end
}

// SessionPage is a part of the list of sessions.
type SessionPage struct {
	Sessions []Session `json:"sessions"`
	Next     *int64    `json:"next"` // for the next page; nil: this is the last one
}

// NewSession is what POST /v1/sessions takes.
type NewSession struct {
	Unit string `json:"unit"`
}

// Message is what POST /v1/sessions/{id}/messages takes as JSON: the text, or a whole input. As
// a form it has the same fields, and the caller's files beside them.
type Message struct {
	Message  string            `json:"message,omitempty"` // becomes the field message of the input
	Input    json.RawMessage   `json:"input,omitempty"`   // a JSON object; with it there is no message
	Timeout  string            `json:"timeout,omitempty"` // as that of a Submission
	Metadata map[string]string `json:"metadata,omitempty"`
}

// AgentEvent is the data of an EventAgent: what the program of a session told in a turn. The
// text is its own, as long as one event may be: a longer one is in several.
type AgentEvent struct {
	Kind string `json:"kind"`           // "text", "thought", "tool", "plan", "strange", "refused" or "progress"
	Text string `json:"text,omitempty"` // at most 64 KiB
	ID   string `json:"id,omitempty"`   // of a tool call
	ToolNews
}

// ToolNews is what an AgentEvent tells of a tool call, as far as the program does.
type ToolNews struct {
	// a JSON object of the first arguments, of which long ones are cut: at most 4 KiB; "": nothing is told
	Arguments string    `json:"arguments,omitempty"`
	State     ToolState `json:"state,omitempty"`        // "": nothing is told
	Lines     int       `json:"output_lines,omitempty"` // of the call's output
}

// ToolState says how far a tool call of an agent's program is.
type ToolState string

// The states of a tool call.
const (
	ToolRunning ToolState = "running"
	ToolDone    ToolState = "done"
	ToolFailed  ToolState = "failed"
)

// The kinds of an AgentEvent whose texts go on in the next one of the kind.
const (
	AgentText    = "text"
	AgentThought = "thought"
)

// EventType returns EventAgent.
func (AgentEvent) EventType() EventType { return EventAgent }
