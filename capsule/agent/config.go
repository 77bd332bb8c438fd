package agent

import "time"

// Config is what a unit of kind agent says beside what every unit says.
type Config struct {
	Command    []string          // argv; templates in each element
	Flags      map[string]any    // appended as --name value, sorted by name
	Input      Pattern           // Stdin, File, Args or JSONRPC
	Output     Pattern           // Stdout, File or JSONRPC
	InputFile  string            // below /workspace, a template of {run}; with Input File
	OutputFile string            // below /workspace, a template of {run}; with Output File
	Result     Result            // how its output is read
	Mode       Mode              // Task or Interactive
	Protocol   Protocol          // with Interactive, or JSONRPC; "" where it speaks none
	RPC        RPC               // with PlainRPC
	Resume     []string          // appended from a session's second turn on; templates
	Dir        string            // absolute: where the program starts; "": /workspace
	Env        map[string]string // plain values, or {placeholder}
	CallerEnv  []string          // names that a caller may set
	Approval   Approval          // of what the agent asks to be permitted
	Approvers  []string          // who alone may answer that, see api.CheckApprovers; nil: who may see the run
	AskTime    time.Duration     // how long a person may take to answer that; 0: 10 minutes
	ExitCodes  map[int]string    // to a category: "Transient", "Permanent", "AgentError"
	Image      string            // a reference, instead of a Dockerfile; "" where there is one
	ReadWrite  bool              // access: read-write
	Upstreams  []string          // that it may ask, for {upstream.NAME}
	Workspace  Workspace
	Session    Session
	Disabled   bool // enabled: false
}

// Pattern is the way by which an input comes to the program, or its output from it.
type Pattern string

// The patterns.
const (
	Stdin   Pattern = "stdin"
	Stdout  Pattern = "stdout"
	File    Pattern = "file"
	Args    Pattern = "args"
	JSONRPC Pattern = "json-rpc"
)

// Mode says how long the program lives.
type Mode string

// The modes.
const (
	Task        Mode = "task"        // for one run
	Interactive Mode = "interactive" // it has sessions of several turns, each of which is a run
)

// Protocol is what the program speaks on its pipes.
type Protocol string

// The protocols.
const (
	ACP        Protocol = "acp"         // the Agent Client Protocol
	StreamJSON Protocol = "stream-json" // a JSON document a line, as claude-code documents it
	PlainRPC   Protocol = "json-rpc"    // JSON-RPC 2.0, a method a request
)

// RPC is the request that a program of plain JSON-RPC 2.0 gets for a prompt. What of its answer
// is the text, Result says.
type RPC struct {
	Method  string
	Params  any     // JSON: {message} and {session} are replaced in its texts; nil: {"message": "{message}"}
	Framing Framing // "": Lines
}

// Framing says where a message of JSON-RPC ends.
type Framing string

// The framings.
const (
	Lines  Framing = "lines"          // at the end of its line
	Length Framing = "content-length" // a header says its size, as in the Language Server Protocol
)

// Approval says what a permission request of the agent gets.
type Approval string

// The approvals.
const (
	Deny  Approval = "deny" // the default
	Ask   Approval = "ask"  // a question to a person
	Allow Approval = "allow"
)

// Format is the form of the output.
type Format string

// The formats.
const (
	Text  Format = "text" // the default
	JSON  Format = "json"
	JSONL Format = "jsonl" // a JSON document a line
)

// Result says where in the output things are. What is nil isn't looked for.
type Result struct {
	Format  Format
	Text    *Pick // nil: the whole output
	Session *Pick // the id with which the program resumes
	Usage   *Pick
	CostUSD *Pick
	Error   *Pick // found: the run has failed, and what is there says why
}

// Pick finds a value in JSON documents: in the last one for which all of When holds.
type Pick struct {
	At   string         // a JSON pointer; "": the whole document
	When map[string]any // JSON pointer -> the value that has to be there
}

// Workspace bounds the project that a run gets.
type Workspace struct {
	Write  bool     // also with access: read-only
	Max    int64    // bytes; 0: 1 GiB
	Ignore []string // names that aren't copied
}

// Session says how sessions live.
type Session struct {
	Idle      time.Duration // after which its container ends; 0: 30 minutes
	KeepAlive bool          // one process for all turns
}
