package api

import (
	"encoding/json"
	"time"
)

// MessageRole says who a message is of.
type MessageRole string

// The roles of messages.
const (
	RoleUser  MessageRole = "user"  // of whoever asked for the run
	RoleAgent MessageRole = "agent" // of the run
)

// MessageEvent is the data of an EventMessage: what was said to a run, with which it began or
// while it went on, or what it said before its end. Its texts are payload.
type MessageEvent struct {
	ID       string          `json:"id"` // of whoever said it; unique in no way
	Role     MessageRole     `json:"role"`
	Parts    []Part          `json:"parts"`
	Metadata json.RawMessage `json:"metadata,omitempty"` // a JSON object; nil: none
	At       time.Time       `json:"at"`
}

// Part is a part of a message or of an artifact. Exactly one of Text, Data and File is set.
type Part struct {
	Text string          `json:"text,omitempty"`
	Data json.RawMessage `json:"data,omitempty"` // any JSON value
	File *File           `json:"file,omitempty"` // of the run
	// "": of text, text/plain; of data, application/json; of a file, unknown
	MediaType string `json:"media_type,omitempty"`
}

// ArtifactEvent is the data of an EventArtifact: a part of what a run gives, told while it goes
// on. Its texts are payload.
type ArtifactEvent struct {
	ID     string    `json:"id"` // the run's own; the same for all parts of one artifact
	Name   string    `json:"name,omitempty"`
	Parts  []Part    `json:"parts"`
	Append bool      `json:"append,omitempty"` // the parts follow those that are there; else they take their place
	Last   bool      `json:"last,omitempty"`   // no more comes
	At     time.Time `json:"at"`
}

// HeardMessage is a message with its number among the events of its run.
type HeardMessage struct {
	N int64 `json:"n"` // it grows: whoever has read up to one number finds all that came later
	MessageEvent
}

// MessagePage is a part of the messages of a run, in the order in which they came.
type MessagePage struct {
	Messages []HeardMessage `json:"messages"`
	Next     *int64         `json:"next"` // after which there may be more; nil: that was the last
}

// ToldArtifact is a part of an artifact with its number among the events of its run.
type ToldArtifact struct {
	N int64 `json:"n"`
	ArtifactEvent
}

// ArtifactPage is a part of what a run told of its artifacts, in the order in which it did.
type ArtifactPage struct {
	Artifacts []ToldArtifact `json:"artifacts"`
	Next      *int64         `json:"next"` // after which there may be more; nil: that was the last
}

// Saying is what somebody says to a run that goes on (schemas/openapi.json, "Saying"): a Text, Data
// or Parts.
type Saying struct {
	ID       string          `json:"id,omitempty"` // "": one is made
	Text     string          `json:"text,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	Parts    []Part          `json:"parts,omitempty"`    // without files
	Metadata json.RawMessage `json:"metadata,omitempty"` // a JSON object
}

// EventType returns EventMessage.
func (MessageEvent) EventType() EventType { return EventMessage }

// EventType returns EventArtifact.
func (ArtifactEvent) EventType() EventType { return EventArtifact }
