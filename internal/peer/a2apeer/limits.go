package a2apeer

import "time"

// Bounds of what is read from an agent, in bytes.
const (
	MaxCard    = 1 << 20   // its card
	MaxAnswer  = 16 << 20  // an answer that is no stream
	MaxEvent   = 9 << 20   // an event of a stream
	MaxStream  = 256 << 20 // a stream as a whole
	MaxTask    = 32 << 20  // what the parts of a task hold together
	maxRefusal = 64 << 10  // the body of an error; the rest is ignored
	maxID      = 256       // an id of a task or a context
	maxWords   = 4 << 10   // a text that is only shown
)

// Bounds of how many there may be.
const (
	MaxArtifacts  = 1_000   // of a task
	maxParts      = 10_000  // of a task
	maxEvents     = 100_000 // of a stream
	maxValues     = 250_000 // of one JSON document: texts, numbers, arrays, objects
	maxInterfaces = 64      // of a card
)

// Bounds of time.
const (
	CardTime    = 10 * time.Second // for a card
	CallTime    = 30 * time.Second // for a question about a task
	silenceTime = 90 * time.Second // in which a stream says nothing, not even a comment
)
