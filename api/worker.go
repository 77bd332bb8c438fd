package api

import "time"

// WorkerState is whether a worker is there.
type WorkerState string

// The states of a worker.
const (
	WorkerInvited   WorkerState = "invited"   // nobody has joined as it yet
	WorkerConnected WorkerState = "connected" // it takes runs, unless it is drained
	WorkerAway      WorkerState = "away"      // its runs go on, and it may come back
	WorkerLost      WorkerState = "lost"      // away for so long that its runs count as lost
)

// Worker is a machine that takes runs from a server.
type Worker struct {
	Name     string      `json:"name"`
	State    WorkerState `json:"state"`
	Drained  bool        `json:"drained,omitempty"`   // it takes nothing new
	DiskFull bool        `json:"disk_full,omitempty"` // likewise, until it has room again
	// Node is why its node in a Swarm takes nothing new: drain, pause, or gone; "": it does, or it has none.
	Node        string     `json:"node,omitempty"`
	Version     string     `json:"version,omitempty"` // of its program
	Slots       int        `json:"slots,omitempty"`
	Running     int        `json:"running"`
	MemoryBytes int64      `json:"memory_bytes,omitempty"`
	Labels      []string   `json:"labels,omitempty"`
	SeenAt      *time.Time `json:"seen_at,omitempty"`    // when it was connected last; nil: never
	ExpiresAt   *time.Time `json:"expires_at,omitempty"` // of an invitation
}

// Demand is what runs that wait lack of machines, by what they need of them.
type Demand struct {
	Needs   []string  `json:"needs"`   // labels; none: any machine with containers would do
	Waiting int       `json:"waiting"` // runs that would begin on further machines
	Since   time.Time `json:"since"`   // when the first of them came
	Slots   int       `json:"slots"`   // of the machines that take such runs now, free or not
	Running int       `json:"running"` // runs that hold one of those
}

// WorkerJoin is what a machine joins a server with, once.
type WorkerJoin struct {
	Name      string    `json:"name,omitempty"`   // "": the node's, of a file for all nodes of a Swarm
	Server    string    `json:"server,omitempty"` // its address; "": where the server was asked for this
	Home      string    `json:"home,omitempty"`   // the id of the server's data; "": the server tells it
	Pins      []string  `json:"pins,omitempty"`   // of its certificate; none: by the system's roots
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}
