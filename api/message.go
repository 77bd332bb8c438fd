package api

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
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

// The bounds of a message and of a part of an artifact.
const (
	MaxParts     = 64      // of one
	MaxPartBytes = 1 << 20 // of all its texts and data together, with its metadata
	MaxNameBytes = 256     // of an id, a name or a media type
)

// CheckMessage returns an Input or a TooLarge fault unless a message keeps its bounds: its role is
// known, each part has exactly one of text, data and a file, and all that is JSON is whole. The
// fault tells nothing of what it says.
func CheckMessage(m MessageEvent) error {
	if m.Role != RoleUser && m.Role != RoleAgent {
		return fault.New(fault.Input, "there is no such role of a message").WithHint("it is user or agent")
	}
	if !isName(m.ID) || m.ID == "" {
		return badName("id of the message")
	}
	if m.Metadata != nil && !isObject(m.Metadata) {
		return fault.New(fault.Input, "the metadata of the message isn't a JSON object")
	}
	return CheckParts(m.Parts, len(m.Metadata))
}

// CheckArtifact is CheckMessage for a part of an artifact.
func CheckArtifact(a ArtifactEvent) error {
	switch {
	case !isName(a.ID) || a.ID == "":
		return badName("id of the artifact")
	case !isName(a.Name):
		return badName("name of the artifact")
	case len(a.Parts) == 0 && a.Last: // nothing more comes
		return nil
	}
	return CheckParts(a.Parts, 0)
}

// CheckParts checks the parts of a message or an artifact, with which more bytes come.
func CheckParts(parts []Part, more int) error {
	if len(parts) == 0 || len(parts) > MaxParts {
		return fault.New(fault.Input, "there are %d parts", len(parts)).
			WithHint("give 1 to %d, each with text, data or a file", MaxParts)
	}
	size := more
	for i, part := range parts {
		if err := part.check(); err != nil {
			return fault.Wrap(fault.Input, err, "part %d is not valid: %s", i+1, fault.Public(err).Msg)
		}
		size += len(part.Text) + len(part.Data)
	}
	if size > MaxPartBytes {
		return fault.New(fault.TooLarge, "the parts have %d bytes together; %d are allowed", size, MaxPartBytes).
			WithHint("put what is large into a file")
	}
	return nil
}

func (p Part) check() error {
	kinds := 0
	for _, has := range []bool{p.Text != "", p.Data != nil, p.File != nil} {
		if has {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return fault.New(fault.Input, "it has not exactly one of text, data and a file")
	case !utf8.ValidString(p.Text):
		return fault.New(fault.Input, "its text is not UTF-8")
	case p.Data != nil && !json.Valid(p.Data):
		return fault.New(fault.Input, "its data isn't JSON")
	case !isName(p.MediaType):
		return fault.New(fault.Input, "its media type is not valid")
	case p.File != nil:
		return CheckFileName(p.File.Name)
	}
	return nil
}

func badName(what string) error {
	return fault.New(fault.Input, "the %s is not valid", what).
		WithHint("it has at most %d bytes of UTF-8, without control characters", MaxNameBytes)
}

func isName(text string) bool {
	return len(text) <= MaxNameBytes && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func isObject(raw json.RawMessage) bool {
	return json.Valid(raw) && bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
}

// Message makes the message of a saying, in the role of a user. It doesn't check more than that there
// is one: see CheckMessage.
func (s Saying) Message() (MessageEvent, error) {
	m := MessageEvent{ID: s.ID, Role: RoleUser, Parts: s.Parts, Metadata: s.Metadata}
	given := 0
	if s.Text != "" {
		given, m.Parts = given+1, []Part{{Text: s.Text}}
	}
	if s.Data != nil {
		given, m.Parts = given+1, []Part{{Data: s.Data}}
	}
	if len(s.Parts) > 0 {
		given++
	}
	if given != 1 {
		return m, fault.New(fault.Input, "the message has not exactly one of text, data and parts").
			WithHint(`such as {"text": "stop after this page"}`)
	}
	return m, nil
}
