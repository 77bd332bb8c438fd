package api

import "encoding/json"

// Event is something that happened in a run, as a Service remembers it.
type Event struct {
	Seq  int64 // 1, 2, 3, … within the run
	Type EventType
	Data json.RawMessage
}

// EventType says what an event's data is.
type EventType string

// The types of events. After the event of type EventEnd there are no more.
const (
	EventState    EventType = "state"    // a Transition, with the number of the attempt
	EventWarning  EventType = "warning"  // {"message"}
	EventBuild    EventType = "build"    // {"step", "name", "state"}
	EventAttempt  EventType = "attempt"  // an attempt that failed and is made again
	EventCall     EventType = "call"     // a Call: one was made, or has ended
	EventProgress EventType = "progress" // {"percent", "step", "message"}: the unit's own word
	EventCancel   EventType = "cancel"   // {"reason"}: somebody asked for the run's end
	EventEnd      EventType = "end"      // {"state", "outcome"}
)
