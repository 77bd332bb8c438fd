package spool

import (
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
)

// Submission asks a server for one run of a unit.
type Submission struct {
	Unit    string          // "" with a Session: its own
	Session string          // the run is its next turn; "" for none
	Input   json.RawMessage // a JSON object; nil is {}
	Files   *Spool          // the caller's files, which the server takes over; nil for none
	Timeout time.Duration   // 0: the unit's, or the default
	Within  time.Duration   // shortens the timeout, whatever it is, and never lengthens it; 0 does neither
	// Metadata says what the run is about, within the bounds of api.CheckMetadata: lists can be
	// searched by it. What the run calls inherits it.
	Metadata map[string]string
	// Context is the conversation or group that the client counts the run to; "" for none. At
	// most 256 bytes, without control characters.
	Context string
	// Message is what the run's client said, where it said more than Input holds: the first of
	// the run's messages. Its files are named as in Files. nil for none.
	Message *api.MessageEvent
	// Resend is a digest of what a client sends again when it heard no answer: the submission
	// joins the unit's run of the same digest for which Service.Delivered was not called yet. ""
	// for none.
	Resend string
	// Key makes the submission idempotent: a second one with the same key joins the
	// run of the first. "" for none.
	Key string
	// Unattended says that nobody answers questions of the run and of what it calls: they are
	// denied at once.
	Unattended bool
	// Start is what the program of a wrapped agent starts with, see capsule.Capsule.CheckStart. A
	// turn of a session has none.
	Start capsule.AgentStart
	// Extra is for the unit's kind, from a feature of this process. Such a run has one attempt.
	Extra any
	// TraceParent is the caller's W3C trace context; "" for none.
	TraceParent string
}
