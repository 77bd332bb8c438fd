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
	EventEnd      EventType = "end"      // EndEvent: the last word
)

// EventData is the data of an event: a Transition, WarningEvent, BuildEvent, AttemptEvent,
// Call, ModelCall, UpstreamEvent, ProgressEvent, CancelEvent, NodeEvent, QuestionEvent, AgentEvent,
// EgressEvent, MessageEvent, ArtifactEvent or EndEvent, never a pointer to one.
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
