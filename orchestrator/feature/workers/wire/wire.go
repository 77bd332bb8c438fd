// Package wire has the messages between a server and its workers, and the addresses to which they go: plain HTTP
// requests of the worker, with its credential as a bearer's token, below Root.
//
//	Enrol       once, with the invitation: the credential that the worker has made
//	Orders      a stream of Order, an object a line, from the server to the worker
//	Renew       every few seconds: which leases the worker holds; the answer says which of them are void
//	Accept      a run that was offered: the answer is the Assignment with its lease
//	Leave       what an end means that the worker is told to make: its node is to be emptied, or it is updated
//	Leases/ID/  files, reports, the end of a run, and what its program asks
//
// A lease fences a run: whoever names another one is refused, with HeaderVoid. Every request may be made again: the
// same again gets the same answer.
//
// It must not know how a run is led, nor how one is carried out.
//
// Its Go API may change with every release: see docs/stability.md.
package wire

import (
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
)

// The addresses. Leases is followed by the id of a lease and one of the parts below.
const (
	Root   = "/v1/work/"
	Enrol  = Root + "enrol"
	Orders = Root + "orders"
	Renew  = Root + "renew"
	Accept = Root + "accept"
	Leases = Root + "leases/"
	Leave  = Root + "leave" // POST, when the worker is told to end: a Leaving
	Units  = Root + "units" // POST versions of units that the worker has: Used, those that are in use
)

// The parts of a lease's address. Those with a name below are followed by it.
const (
	Unit      = "unit"      // GET: the unit's version as a tar
	Secrets   = "secrets"   // GET: the values of the secrets of its program, by their names
	Input     = "input"     // GET, with the name of an input file
	Report    = "report"    // POST: a Report
	Output    = "output"    // HEAD and PUT, with the name of an output file
	End       = "end"       // POST: an Ended
	Gone      = "gone"      // POST: nothing of the run is left at the worker
	API       = "api"       // what the program asks, below it as the capsule API has it
	Project   = "project"   // GET: the run's project as a tar
	Changes   = "changes"   // PUT: a tar of what the attempt has changed of it; GET: what turns before it have
	Home      = "home"      // GET: a tar of what the session's programs remember; PUT: as the turn has left it
	Ask       = "ask"       // POST: a Question; the answer is an Answered
	Stdin     = "stdin"     // POST: a Hear of an MCP server; the answer is a Heard
	Stdout    = "stdout"    // POST: a Said of one
	Slot      = "slot"      // POST: a Loan; that the run has it again is answered when it has
	Transfers = "transfers" // PUT a tar of files that were asked for, POST what became of an order
	Incoming  = "incoming"  // GET, with the name of a file that a callee returned
	Image     = "image"     // GET, with a reference of Images: that image, as `docker save` writes it
)

// Protocol is the version of these messages. A server takes workers of this one and of the one before it.
const Protocol = 1

// HeaderVoid is in an answer that says: the lease isn't good any more. A proxy's 404 has none.
const HeaderVoid = "Aod-Lease-Void"

// HeaderLast is in the refusal of a Hello that comes late, and has the number of the last one.
const HeaderLast = "Aod-Last-Hello"

// HeaderAuthorization has what a program sends as its Authorization: that of the request is the worker's.
const HeaderAuthorization = "Aod-Program-Authorization"

// HeaderSize has how many bytes of an output file the server has, or how many its image has, and HeaderDigest the
// SHA-256 of the whole file in hexadecimal, with the last of its parts.
const (
	HeaderSize   = "Aod-Size"
	HeaderDigest = "Aod-Sha256"
)

// PaxSize is the record of an entry of a tar that stands for a file that is too large: it has the size alone.
const PaxSize = "AOD.size"

// Times that both ends go by.
const (
	// Beat is how often the server says that the stream of orders lives.
	Beat = 5 * time.Second
	// Silence is after how long a silent stream of orders counts as broken.
	Silence = 3 * Beat
	// Renewal is how often a worker renews its leases.
	Renewal = 10 * time.Second
	// Lease is how long a worker counts as there after a renewal.
	Lease = 30 * time.Second
)

// Bounds of messages, in bytes.
const (
	MaxMessage = 1 << 20   // of a message without an input or an output
	MaxLines   = 256 << 10 // of the log in a Report, about, and of what a program said
	MaxTold    = 32 << 20  // of one thing that a program said
	MaxPart    = 16 << 20  // of an output file in one request
)

// Enrolment asks for a credential: the worker has made it, and written it down before.
type Enrolment struct {
	Credential string `json:"credential"`
	// Node is the id of the worker's node, where it enrols with what all nodes of a Swarm have.
	Node string `json:"node,omitempty"`
}

// Enrolled answers an Enrolment.
type Enrolled struct {
	Name string `json:"name"`
	Home string `json:"home"` // id of the server's home
}

// Hello is what a worker tells of itself when it asks for orders.
type Hello struct {
	Protocol int    `json:"protocol"`
	Home     string `json:"home"` // of the server that it has joined
	// Number is greater than that of every Hello before: one that comes late is refused.
	Number      int64    `json:"number"`
	Version     string   `json:"version"`
	Slots       int      `json:"slots"`
	MemoryBytes int64    `json:"memory_bytes,omitempty"` // that all runs together may take; 0: not known
	Labels      []string `json:"labels,omitempty"`
	Node        string   `json:"node,omitempty"` // the id of its node in a Swarm
	Held
}

// Leaving answers a worker that was told to end.
type Leaving struct {
	// Finish says that its node is to be emptied: what runs ends here. Else the next process goes on with it.
	Finish bool `json:"finish"`
}

// Used asks which versions of units are in use, and has those in its answer: a worker hears of no others.
type Used struct {
	Units []string `json:"units"` // versions of units, as name@version
}

// Order is a line of the stream of orders. One of its fields is set; none in a beat.
type Order struct {
	Offer    *Offer    `json:"offer,omitempty"`
	Cancel   *Cancel   `json:"cancel,omitempty"`
	Transfer *Transfer `json:"transfer,omitempty"`
	Void     string    `json:"void,omitempty"` // a lease: what the worker has of it is to be removed
	Rest     string    `json:"rest,omitempty"` // a session: its container is to end, until the next turn
	Over     string    `json:"over,omitempty"` // a session: what the worker has of it is to be removed
}

// Offer is a run that the worker may accept.
type Offer struct {
	ID string `json:"id"`
}

// Cancel asks for the end of a run.
type Cancel struct {
	Lease  string `json:"lease"`
	Reason string `json:"reason,omitempty"`
	// Caller says that the run ends because its caller has, CallerTime because the caller's time is up.
	Caller     bool `json:"caller,omitempty"`
	CallerTime bool `json:"caller_time,omitempty"`
}

// Transfer asks for files that a run hands over or shows, or has the worker fetch some that a callee returned.
type Transfer struct {
	Lease string   `json:"lease"`
	ID    string   `json:"id"`
	Names []string `json:"names"`
	// From is the directory in the sandbox that has them: /io/handoff/outgoing or /io/output.
	From     string `json:"from,omitempty"`
	Incoming bool   `json:"incoming,omitempty"` // they are to be fetched
	MaxBytes int64  `json:"max_bytes,omitempty"`
}

// Transferred says what became of a Transfer.
type Transferred struct {
	Error string `json:"error,omitempty"` // why the worker couldn't; "": it could
}

// Renewed answers the list of the leases that a worker holds.
type Renewed struct {
	Void []string `json:"void,omitempty"` // those that aren't good any more
	Over []string `json:"over,omitempty"` // sessions that are over, or go on elsewhere
}

// Held is what a worker holds: its leases, the nonces of what it accepts and has no lease of yet, and the sessions of
// which no turn goes on.
type Held struct {
	Leases   []string `json:"leases,omitempty"`
	Nonces   []string `json:"nonces,omitempty"`
	Sessions []string `json:"sessions,omitempty"`

	Closed bool `json:"closed,omitempty"` // it takes nothing new: its disk is full, say
}

// Acceptance accepts an offer. The nonce is the worker's own, and written down before.
type Acceptance struct {
	Offer string `json:"offer"`
	Nonce string `json:"nonce"`
}

// Assignment is all that a worker has to know of a run beside its files.
type Assignment struct {
	Lease   string `json:"lease"`
	Run     string `json:"run"`
	Root    string `json:"root"`
	Parent  string `json:"parent,omitempty"`
	Attempt int    `json:"attempt"`
	// Path is that of its calls, from the root to the run itself.
	Path   []handoff.Step `json:"path"`
	Grants []string       `json:"grants,omitempty"`

	Unit   Of              `json:"unit"`
	Limits runtime.Limits  `json:"limits"`
	Input  json.RawMessage `json:"input"`
	Files  []api.File      `json:"files,omitempty"` // of the input
	// Start is what the caller of a wrapped agent has said to its program.
	Start   capsule.AgentStart `json:"start,omitzero"`
	Project bool               `json:"project,omitempty"` // it works on one
	Session *Session           `json:"session,omitempty"` // of which it is a turn
	Talk    bool               `json:"talk,omitempty"`    // it is an MCP server: see Stdin
	// Left is how long the caller of the run still has when this is sent; 0: it has no end.
	Left time.Duration `json:"left,omitempty"`
}

// Session is the one of which a run is a turn.
type Session struct {
	ID      string `json:"id"`
	Turn    int    `json:"turn"`
	Single  bool   `json:"single,omitempty"`  // it ends with this turn
	Project bool   `json:"project,omitempty"` // it was given one, which is the run's
	// Saved is what its kind kept at the end of the turn before, and After the lease of that turn: a worker that has
	// what it left goes on with that. With "" what the worker has isn't good; Home and Changes say what the server has.
	Saved   json.RawMessage `json:"saved,omitempty"`
	After   string          `json:"after,omitempty"`
	Home    bool            `json:"home,omitempty"`
	Changes bool            `json:"changes,omitempty"`
}

// Question is what a program wants to be let do. The same again gets the same answer.
type Question struct {
	Address   string           `json:"address"` // names it in its run
	Kind      api.QuestionKind `json:"kind,omitempty"`
	Text      string           `json:"text"`
	Show      json.RawMessage  `json:"show,omitempty"`
	Answers   []string         `json:"answers"`
	Approvers []string         `json:"approvers,omitempty"`
	Left      time.Duration    `json:"left,omitempty"` // for which it is open; 0: without an end
}

// Answered answers a Question.
type Answered struct {
	Pending bool   `json:"pending,omitempty"` // nobody has answered yet: it is to be asked again
	Action  string `json:"action,omitempty"`
	Denied  string `json:"denied,omitempty"` // why it was refused; "": it wasn't
}

// Hear asks for what the program of an MCP server is to read, when so many bytes of it have come.
type Hear struct {
	Offset int64 `json:"offset"`
	Ended  bool  `json:"ended,omitempty"` // there are no more: it waits for Over
}

// Heard answers a Hear. Without bytes, and without Over, it is to be asked again.
type Heard struct {
	Bytes []byte    `json:"bytes,omitempty"`
	Ended bool      `json:"ended,omitempty"` // there are no more after those
	Over  *TalkOver `json:"over,omitempty"`  // the session is over
}

// Said is what the program of an MCP server has written, after so many bytes.
type Said struct {
	Offset int64  `json:"offset"`
	Bytes  []byte `json:"bytes,omitempty"`
	Ended  bool   `json:"ended,omitempty"` // it writes no more
}

// TalkOver is how a session with an MCP server ended, with its calls.
type TalkOver struct {
	Well    bool           `json:"well,omitempty"`    // nobody wanted more of it
	Message string         `json:"message,omitempty"` // why it didn't end well; "": the program ended
	Hint    string         `json:"hint,omitempty"`
	Calls   []api.ToolCall `json:"calls,omitempty"` // the first
	All     int            `json:"all,omitempty"`
	Failed  int            `json:"failed,omitempty"`
}

// Of is a version of a unit, with the part of the server's policy that holds for its container.
type Of struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Upload  bool   `json:"upload,omitempty"`

	Network   string            `json:"network"`
	ReadWrite bool              `json:"read_write,omitempty"`
	Writable  bool              `json:"writable,omitempty"`
	Isolation string            `json:"isolation,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Models    []string          `json:"models,omitempty"`
	Upstreams []string          `json:"upstreams,omitempty"`
	Secrets   map[string]string `json:"secrets,omitempty"` // names of them, by the variables that its program has
	// Egress are the hosts that it may reach by name, within EgressCap where EgressBounded says so.
	Egress        []string `json:"egress,omitempty"`
	EgressBounded bool     `json:"egress_bounded,omitempty"`
	EgressCap     []string `json:"egress_cap,omitempty"`

	Warm  int `json:"warm,omitempty"`
	Reuse int `json:"reuse,omitempty"`

	BuildNetwork string `json:"build_network,omitempty"`
	NoFetch      bool   `json:"no_fetch,omitempty"`
	ImageBytes   int64  `json:"image_bytes,omitempty"`
}

// Reported is what a worker tells while a run goes on. It may come again, in whole or in part.
type Reported struct {
	// Line is the number of the first of Lines among those of the attempt, from 0.
	Line  int64  `json:"line,omitempty"`
	Lines []Line `json:"lines,omitempty"`
	// Told is what the program said of its turn, and First the number of the first of that, likewise.
	First int64            `json:"first,omitempty"`
	Told  []api.AgentEvent `json:"told,omitempty"`
	// Builds are steps of the build of its image, which may be lost.
	Builds []api.BuildEvent `json:"builds,omitempty"`
	// Egress are hosts that the program reached, or was refused, for the first time.
	Egress []api.EgressEvent `json:"egress,omitempty"`
	// Running is set when the run's program runs.
	Running *Progress `json:"running,omitempty"`
	// Waits is for what it waits; nil: for nothing.
	Waits *api.Waiting `json:"waits,omitempty"`
}

// IsEmpty reports whether nothing is told but for what a run waits.
func (r Reported) IsEmpty() bool {
	return len(r.Lines)+len(r.Told)+len(r.Builds)+len(r.Egress) == 0 && r.Running == nil
}

// Loan says whether the run does without its slot for now: it waits for its image.
type Loan struct {
	Lent bool `json:"lent"`
}

// Line is a line that a program wrote, as runtime.LogLine has it.
type Line struct {
	Time   time.Time `json:"time"`
	Stream string    `json:"stream"`
	Text   string    `json:"text"`
	Cut    bool      `json:"cut,omitempty"`
}

// Received answers a Reported.
type Received struct {
	Lines int64 `json:"lines"`          // how many lines of the attempt the server has
	Told  int64 `json:"told,omitempty"` // how much of what its program said: after a start of the server none
}

// Progress is the worker's part of a record: what it alone knows.
type Progress struct {
	StartedAt *time.Time     `json:"started_at,omitempty"`
	Image     api.ImageRef   `json:"image,omitzero"`
	Container *api.Container `json:"container,omitempty"`
	Timings   api.Timings    `json:"timings"`
	Usage     *api.Usage     `json:"usage,omitempty"`
	Log       api.LogStats   `json:"log"`
	// Egress are the hosts that the run reached at this worker.
	Egress []api.EgressRow `json:"egress,omitempty"`
	// Agent is what a wrapped agent has told of itself.
	Agent    Agent    `json:"agent,omitzero"`
	Warnings []string `json:"warnings,omitempty"` // all of the attempt
}

// Agent is what a wrapped agent has told of itself, as api.Record has it.
type Agent struct {
	Session string          `json:"session,omitempty"`
	Usage   json.RawMessage `json:"usage,omitempty"`
	CostUSD json.Number     `json:"cost_usd,omitempty"`
}

// Ended is how an attempt ended. Its files are at the server before it is told.
type Ended struct {
	Progress
	State    api.State       `json:"state"`
	Outcome  api.Outcome     `json:"outcome"`
	ExitCode *int            `json:"exit_code,omitempty"`
	Failure  *api.RunError   `json:"failure,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Files    []api.File      `json:"files,omitempty"`
	Lines    int64           `json:"lines"`          // of the log, all told
	Said     int64           `json:"said,omitempty"` // by the program, all told: see Reported
	// Changes says that the attempt has told what it made of its project.
	Changes bool `json:"changes,omitempty"`
	// Session is what the turn has left of its session; nil: it has left nothing.
	Session *SessionEnd `json:"session,omitempty"`
	// Shares says that the container may serve the next run of its unit, when it is told that nothing of this one is
	// left.
	Shares bool `json:"shares,omitempty"`
}

// MostHome is how many bytes of what programs remember go to the server, packed, by the limit of a turn's output.
func MostHome(outputBytes int64) int64 { return outputBytes + 64<<20 }

// SessionEnd is what a turn has left of its session.
type SessionEnd struct {
	Saved json.RawMessage `json:"saved,omitempty"` // what its kind needs for the next turn; nil: what it needed before
	Over  string          `json:"over,omitempty"`  // why there can be no further one; "": there can
	Home  bool            `json:"home,omitempty"`  // the server has been sent what its programs remember
}
