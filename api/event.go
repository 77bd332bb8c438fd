package api

import (
	"encoding/json"
	"fmt"
)

// Event is something that happened in a run, as a server remembers it and sends it: its
// fields are those of one server-sent event (schemas/event.schema.json).
type Event struct {
	Seq  int64 // 1, 2, 3, … within the run
	Type EventType
	Data json.RawMessage // see Decode
}

// EventType says what an event's data is.
type EventType string

// The types of events. After the event of type EventEnd there are no more.
const (
	EventState    EventType = "state"    // Transition: the run entered a state
	EventWarning  EventType = "warning"  // WarningEvent: something is worth knowing and stops nothing
	EventBuild    EventType = "build"    // BuildEvent: a step of the image's build began or ended
	EventAttempt  EventType = "attempt"  // AttemptEvent: an attempt failed and is made again
	EventCall     EventType = "call"     // Call: a call was made, or has ended
	EventProgress EventType = "progress" // ProgressEvent: the unit's own word on how far it is
	EventModel    EventType = "model"    // ModelCall: a request for a model is over
	EventUpstream EventType = "upstream" // UpstreamEvent: a request to an upstream is over
	EventCancel   EventType = "cancel"   // CancelEvent: somebody asked for the run's end
	EventNode     EventType = "node"     // NodeEvent: a step of a flow was kept
	EventQuestion EventType = "question" // QuestionEvent: a question was asked, answered or closed
	EventAgent    EventType = "agent"    // AgentEvent: the program of a session told something
	EventEgress   EventType = "egress"   // EgressEvent: a host was reached, or refused, for the first time
	EventMessage  EventType = "message"  // MessageEvent: something was said to the run, or by it
	EventArtifact EventType = "artifact" // ArtifactEvent: a part of what it gives, while it goes on
	EventTokens   EventType = "tokens"   // TokensEvent: a model says something at the moment; not stored
	EventEnd      EventType = "end"      // EndEvent: the last word
)

// EventData is the data of an event: a Transition, WarningEvent, BuildEvent, AttemptEvent,
// Call, ModelCall, UpstreamEvent, ProgressEvent, CancelEvent, NodeEvent, QuestionEvent, AgentEvent,
// EgressEvent, MessageEvent, ArtifactEvent, TokensEvent or EndEvent, never a pointer to one.
type EventData interface {
	// EventType is the type of the events that have such data.
	EventType() EventType
}

// Decode returns the event's data by its type. It is nil, without an error, for a type
// that isn't known here: servers may be newer than their readers. The error is for data
// that its type doesn't have.
func (e Event) Decode() (EventData, error) {
	if decode := decoders[e.Type]; decode != nil {
		return decode(e)
	}
	return nil, nil
}

// decoders read the data of the types that are known here.
var decoders = map[EventType]func(Event) (EventData, error){
	EventState:    decodeAs[Transition],
	EventWarning:  decodeAs[WarningEvent],
	EventBuild:    decodeAs[BuildEvent],
	EventAttempt:  decodeAs[AttemptEvent],
	EventCall:     decodeAs[Call],
	EventProgress: decodeAs[ProgressEvent],
	EventModel:    decodeAs[ModelCall],
	EventUpstream: decodeAs[UpstreamEvent],
	EventCancel:   decodeAs[CancelEvent],
	EventNode:     decodeAs[NodeEvent],
	EventQuestion: decodeAs[QuestionEvent],
	EventAgent:    decodeAs[AgentEvent],
	EventTokens:   decodeAs[TokensEvent],
	EventEgress:   decodeAs[EgressEvent],
	EventMessage:  decodeAs[MessageEvent],
	EventArtifact: decodeAs[ArtifactEvent],
	EventEnd:      decodeAs[EndEvent],
}

func decodeAs[T EventData](e Event) (EventData, error) {
	var data T
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return nil, fmt.Errorf("decode event %d of type %s: %w", e.Seq, e.Type, err)
	}
	return data, nil
}

// WarningEvent is the data of an EventWarning.
type WarningEvent struct {
	Message string `json:"message"` // one of Record.Warnings
}

// BuildEvent is the data of an EventBuild. What a step prints isn't told.
type BuildEvent struct {
	Step  string `json:"step"`           // identifies the step within this build
	Name  string `json:"name,omitempty"` // such as "[2/4] RUN pip install"
	State string `json:"state"`          // "started", "done", "cached" or "failed"
}

// AttemptEvent is the data of an EventAttempt: the attempt that failed, and when the next
// one begins.
type AttemptEvent struct {
	Attempt
	RetryInMS int64 `json:"retry_in_ms"` // milliseconds after the failure
}

// ProgressEvent is the data of an EventProgress. The texts are the unit's own, at most
// 1 KiB each and without control characters.
type ProgressEvent struct {
	Percent *float64 `json:"percent,omitempty"` // 0 to 100; nil: not said
	Step    string   `json:"step,omitempty"`
	Message string   `json:"message,omitempty"`
}

// CancelEvent is the data of an EventCancel.
type CancelEvent struct {
	Reason string `json:"reason,omitempty"` // of whoever asked; "": none was given
}

// NodeEvent is the data of an EventNode: what a step of a flow is now, without any values.
type NodeEvent struct {
	Address   string    `json:"address"`
	Try       int       `json:"try"`
	State     StepState `json:"state"`
	Run       string    `json:"run,omitempty"` // that it called
	Cached    bool      `json:"cached,omitempty"`
	Action    string    `json:"action,omitempty"`
	ErrorKind string    `json:"error_kind,omitempty"`
	Items     int       `json:"items,omitempty"` // of a map that begins: how many there are
}

// QuestionEvent is the data of an EventQuestion. What is asked and answered isn't told.
type QuestionEvent struct {
	ID      string        `json:"id"`
	Address string        `json:"address"`
	State   QuestionState `json:"state"`
	Action  string        `json:"action,omitempty"` // of the answer
	Token   string        `json:"token,omitempty"`  // the name of that with which it was answered; "": it has none
}

// EndEvent is the data of an EventEnd.
type EndEvent struct {
	State   State   `json:"state"` // as the run's record shows it
	Outcome Outcome `json:"outcome"`
}

// EventType returns EventState.
func (Transition) EventType() EventType { return EventState }

// EventType returns EventWarning.
func (WarningEvent) EventType() EventType { return EventWarning }

// EventType returns EventBuild.
func (BuildEvent) EventType() EventType { return EventBuild }

// EventType returns EventAttempt.
func (AttemptEvent) EventType() EventType { return EventAttempt }

// EventType returns EventCall.
func (Call) EventType() EventType { return EventCall }

// EventType returns EventProgress.
func (ProgressEvent) EventType() EventType { return EventProgress }

// EventType returns EventCancel.
func (CancelEvent) EventType() EventType { return EventCancel }

// EventType returns EventNode.
func (NodeEvent) EventType() EventType { return EventNode }

// EventType returns EventQuestion.
func (QuestionEvent) EventType() EventType { return EventQuestion }

// EventType returns EventEnd.
func (EndEvent) EventType() EventType { return EventEnd }
