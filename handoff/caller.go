package handoff

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/bytegate"
)

// Caller is the run that asks. Over the capsule API its identity is the socket: one handler
// a run.
type Caller struct {
	Run, Root, Parent, Unit string
	Path                    []Step         // from the root to the caller, which is the last
	Deadline                time.Time      // absolute; zero: none
	Grants                  []string       // units that it may call
	Tools                   []capsule.Tool // of its tools.yaml: what it calls the units

	// Outgoing and Incoming are the caller's directories on this host. Their last three
	// parts may be in the capsule's reach (…/io/handoff/outgoing), so that no link is
	// followed there. Incoming itself must be mounted read-only for it: what is placed may
	// be hard links to files of ours. A caller without Outgoing ("") hands over the files
	// that it has opened. One without Incoming takes files of results where they lie.
	Outgoing, Incoming string
	Transfer           FileTransfer // nil: the caller sees these very directories
	// Output is the caller's /io/output on this host, of which it shows files before its end. Its
	// last part may be in the capsule's reach. "": it has none, or this host doesn't see it.
	Output string
	// Placed is a directory on this host that no capsule reaches, for the records of what
	// was placed. With Incoming it exists, and is this caller's own.
	Placed string
	Tree   *Tree // nil: one of its own

	Input json.RawMessage // the payload, for GET /invocation; empty: it isn't told there
	// Result is the file in which a posted result is kept, on this host where no capsule
	// reaches it; "": results aren't taken. Its directory exists.
	Result string

	// Reuse says that the program may serve other runs after this one: a posted result is
	// the run's end, and the next request for the invocation is for another run.
	Reuse     bool
	Remaining int // with Reuse: how many further runs its program is told that it may serve
}

// Step is one run on the way from the root to a caller.
type Step struct {
	Run, Unit string
	Budgets   capsule.Budgets // zero fields: not set
	Recursion int
	Flow      bool // it makes calls for its nodes: FlowCalls holds in place of Calls
}

// Depth is how many handoffs lie between the root and the caller.
func (c Caller) Depth() int { return max(len(c.Path)-1, 0) }

// Limits are the operator's. A zero field is its default.
type Limits struct {
	Depth       int   // handoffs below one another; 16
	Calls       int   // in a tree, all together; 200
	FlowCalls   int   // below a flow; 10,000
	ArgsBytes   int64 // of one call's arguments; 1 MiB
	FileBytes   int64 // of all files of one call together; 1 GiB
	Files       int   // of one call; 1000
	ResultBytes int64 // of a result that is posted; 16 MiB
	// Memory is the gate of what all runs send and hold; nil: each has one of its own.
	Memory *bytegate.Gate
}

func (l Limits) withDefaults() Limits {
	if l.Memory == nil {
		l.Memory = bytegate.New(0)
	}
	return Limits{
		Depth:       cmp.Or(max(l.Depth, 0), 16),
		Calls:       cmp.Or(max(l.Calls, 0), 200),
		FlowCalls:   cmp.Or(max(l.FlowCalls, 0), 10_000),
		ArgsBytes:   cmp.Or(max(l.ArgsBytes, 0), 1<<20),
		FileBytes:   cmp.Or(max(l.FileBytes, 0), 1<<30),
		Files:       cmp.Or(max(l.Files, 0), 1000),
		ResultBytes: cmp.Or(max(l.ResultBytes, 0), 16<<20),
		Memory:      l.Memory,
	}
}
