package agenthttp

import (
	"bytes"
	"encoding/json"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// EventType is the type of an event of a stream (section "SSE format"). Other types than
// these are passed on unchanged.
type EventType string

// The types that the specification names. The last three end a stream.
const (
	Started  EventType = "started"
	Progress EventType = "progress"
	Final    EventType = "final" // the one that servers write
	Complete EventType = "complete"
	Done     EventType = "done"
)

// Terminal reports whether an event of this type ends a stream.
func (t EventType) Terminal() bool { return t == Final || t == Complete || t == Done }

// Event is one event of an agent's stream.
type Event struct {
	Type EventType       // "" if the agent gave none
	Data json.RawMessage // one JSON value
}

// eventOf converts an event of the stream into an event of the contract.
func eventOf(m httpwire.Event) (Event, error) {
	data := []byte(m.Data)
	if err := document.Check(data); err != nil {
		return Event{}, broken(document.StreamJSON, "the data of an event %s", err)
	}
	return Event{Type: TypeOf(m), Data: data}, nil
}

// TypeOf takes the type from the name of the message. Agents that give no name put the type
// into the data, as type or as event. The name of a step is not a type.
func TypeOf(m httpwire.Event) EventType {
	if m.Name != "" && m.Name != httpwire.DefaultEventName {
		return EventType(m.Name)
	}
	data := []byte(m.Data)
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
		return ""
	}
	f, err := document.Read(data)
	if err != nil {
		return ""
	}
	first, second := EventType(f.Text("type")), EventType(f.Text("event"))
	if first == "" || !first.Known() && second.Known() {
		return second
	}
	return first
}

// Known reports whether it is one of the types that the specification names.
func (t EventType) Known() bool { return t.Terminal() || t == Started || t == Progress }
