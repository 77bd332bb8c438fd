package handoff

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"os"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// Unit is what the broker knows of a unit.
type Unit struct {
	Name, Description string
	Contract          *contract.Contract
	Schema            []byte // schema.json as it is
	Budgets           capsule.Budgets
	Recursion         int
	Kind              string // of a unit that takes no handoffs; "" of others
}

// Runs makes the calls of one run. The orchestrator implements it.
type Runs interface {
	// Unit returns the unit of a name, or a NotFound fault.
	Unit(ctx context.Context, name string) (*Unit, error)
	// Start accepts a run below the caller, and returns its id, a lower-case UUID. Before
	// it returns it copies call.Files, with File.CopyTo. A key that was used before joins
	// the run that it made; with another target or other args it is an Input fault.
	Start(ctx context.Context, call Call) (id string, err error)
	// Recall returns the run of a call with this key that succeeded in an earlier attempt of
	// the caller, or "" if there is none. With another target or other args it is an Input
	// fault.
	Recall(ctx context.Context, call Call) (id string, err error)
	// Await returns the run when it has ended, or as it stands when ctx ends. A run that
	// has ended is returned at once. One that isn't the caller's own is a NotFound fault.
	Await(ctx context.Context, id string) (Result, error)
	// Cancel asks a run of the caller's own to end. One that has ended is a Conflict fault.
	Cancel(ctx context.Context, id, reason string) error
	// LastWords returns the last lines that the program of a failed run of the caller's own
	// wrote to stderr, at most 4 KiB without control characters; "" for any other run.
	LastWords(ctx context.Context, id string) string
	// Ask asks people. It returns when the question has an answer or is denied, and an
	// Unavailable fault when ctx ends before: the question stays open. A key that was used before
	// joins the question that it made; for another question it is an Input fault.
	Ask(ctx context.Context, q Question) (Answer, error)
	// Progress takes how far the caller says it is.
	Progress(p Progress)
	// Told yields how far a run of the caller's own says it is, until the run's end or that
	// of ctx. What is said faster than it is taken is passed over for what is newer. Of any
	// other run it yields nothing.
	Told(ctx context.Context, id string) iter.Seq[Progress]
}

// Call is a handoff that may go ahead.
type Call struct {
	Target   *Unit
	Args     contract.Payload // its file fields hold clean names, relative to the callee's /io/input
	Files    []File           // each once
	Timeout  time.Duration    // 0: the unit's
	Deadline time.Time        // the caller's; zero: none
	Key      string           // the caller's own for this call; "": none
	Step     string           // of the caller, where it is a flow: the address
	Recall   bool             // a success of the same key in an earlier attempt will do
	Extra    any              // what only the callee's kind understands; nil: nothing
}

// File is a regular file of a call, opened in the caller's outgoing directory or by the
// caller itself. It is open until Start returns.
type File struct {
	Name string // clean, relative to the callee's /io/input
	Open *os.File
	Size int64 // bytes, when the call was checked: what counts against the limit

	given bool // by the caller, who closes it
}

// Close closes a file that the broker has opened.
func (f File) Close() {
	if !f.given {
		_ = f.Open.Close() // read only
	}
}

// CopyTo copies at most Size bytes of the file, and returns how many it copied: the caller
// may be writing to the file. Where the file system can, the copy is a reflink.
func (f File) CopyTo(out *os.File) (int64, error) {
	return io.Copy(out, io.LimitReader(f.Open, f.Size))
}

// FileTransfer copies files between the directories that a caller sees, where its engine
// runs, and Caller's Outgoing and Incoming on this host.
type FileTransfer interface {
	// Fetch copies files of a directory that the caller writes to, by its address in the sandbox and
	// their clean names, into a directory of this host. A file that is missing, is not regular, or
	// has more than maxBytes is the same in there. done removes the directory; whoever calls Fetch
	// calls it, without an error.
	Fetch(ctx context.Context, from string, names []string, maxBytes int64) (dir string, done func(), err error)
	// Send copies files of Incoming, by their names in it, to the caller.
	Send(ctx context.Context, names []string) error
}

// Result is a called run as it stands.
type Result struct {
	ID      string
	Ended   bool
	State   string // as of the run
	Success bool
	Output  json.RawMessage // nil without success
	Files   []Output
	Error   *Failure // nil with success
	// ExitCode is that of the callee's program; nil: it never ran to an end, or it has none.
	ExitCode *int
	Action   string // the last one of a flow's walk; "" of other units
}

// Output is a file that the callee made. It lies on this host where no capsule reaches it.
// Nobody writes to it.
type Output struct {
	Name      string // relative to the callee's /io/output, slash-separated
	Path      string // absolute
	SizeBytes int64
	SHA256    string // hex
	Field     string // the field of the output that names it, dotted; may be empty
}

// Failure is why a called run didn't succeed.
type Failure struct {
	Category string          `json:"category"`
	Kind     string          `json:"kind"`
	Type     string          `json:"type,omitempty"` // the exception's, as the callee told it
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}

// Artifact is a part of what a run gives, told while it goes on.
type Artifact struct {
	Key  string            // the run's own for this part; "": none
	Part api.ArtifactEvent // of its file there is the name alone
	// Open opens its file as it is then, which whoever opened it closes. The error is a fault. nil:
	// it has none.
	Open func() (File, error)
}

// Question is what a program asks people.
type Question struct {
	Key     string // the program's own; "": none
	Kind    api.QuestionKind
	Text    string
	Options []string        // that the answer is one of
	Schema  json.RawMessage // of an object that is filled in; nil: nothing is
	Until   time.Time       // then it is denied
}

// Answer is a person's answer to a Question.
type Answer struct {
	Option string
	Filled map[string]any // nil without a schema
	By     string         // "": not said
	Note   string
	Denied string // why nobody has answered; "": somebody has
}

// The answers to a question that names none. Where Reject is an answer that the program didn't
// name, it denies.
const (
	Reply   = "answer"
	Approve = "approve"
	Reject  = "reject"
)
