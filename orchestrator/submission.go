package orchestrator

import (
	"encoding/json"
	"time"
)

// Submission asks a Service for one run of a unit.
type Submission struct {
	Unit    string
	Input   json.RawMessage // a JSON object; nil is {}
	Files   *Spool          // the caller's files, which the Service takes over; nil for none
	Timeout time.Duration   // 0: the unit's, or the default
	Within  time.Duration   // shortens the timeout, whatever it is, and never lengthens it; 0 does neither
	// Metadata says what the run is about, within the bounds of api.CheckMetadata: lists can be
	// searched by it. What the run calls inherits it.
	Metadata map[string]string
	// Key makes the submission idempotent: a second one with the same key joins the
	// run of the first. "" for none.
	Key string
	// TraceParent is the caller's W3C trace context; "" for none.
	TraceParent string
}
