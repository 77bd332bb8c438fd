package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
)

// Event is something that happens in a live run. Exactly one of the fields from State to
// Data is set, but for Delay. Delay belongs to Attempt.
type Event struct {
	Run      string
	Unit     string
	Parent   string // the run that called it; "" for a root
	Step     string // of the flow that called it, by its address
	State    *api.Transition
	Build    *runtime.BuildEvent
	Log      *runtime.LogLine
	Attempt  *api.Attempt // that failed and is made again after Delay
	Delay    time.Duration
	Warning  string
	Progress *handoff.Progress
	Data     api.EventData // what anything else tells of the run, as it is stored and shown

	// With the State that a run ended in:
	Outcome string // the kind of its error; "" without one
	Files   int    // how many it gave
}

// Once is a key of what is told once.
type Once struct {
	Key         string // "": it is told each time
	Fingerprint string // of what is told, see Digest
}

// CompleteMessage gives a message what its client left out: an id and the role of a user. It is said now.
func CompleteMessage(m *api.MessageEvent) error {
	if m.ID == "" {
		id, err := NewID()
		if err != nil {
			return err
		}
		m.ID = id
	}
	m.Role, m.At = cmp.Or(m.Role, api.RoleUser), time.Now().UTC()
	return nil
}

// DigestOfMessage is the Digest of what a client says, whenever it does.
func DigestOfMessage(m api.MessageEvent) string {
	m.At = time.Time{}
	return Digest(m)
}

// Digest returns the SHA-256 of a value as JSON, in hexadecimal; "" for one that can't be JSON.
func Digest(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // a document in it is none: whoever checks it says so
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
