package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// State is what a process has to know to go on with the dialog of another one: it is kept
// before what it tells of is written to the program. So nothing is written twice. Where nothing may
// be lost either, Stdin stores what is written with the state that was kept before it.
type State struct {
	Session string `json:"session,omitempty"` // the program's own id of the session; "": it has none yet
	Opened  bool   `json:"opened,omitempty"`  // the program was greeted
	Next    int64  `json:"next,omitempty"`    // number of the next request to the program
	Pending string `json:"pending,omitempty"` // id of the request whose answer is awaited; "": none
	Asking  string `json:"asking,omitempty"`  // id of the permission request that waits for its answer; "": none
	Since   int64  `json:"since,omitempty"`   // bytes of the program's stdout that were acted on before that request
	Border  int64  `json:"border,omitempty"`  // bytes that it had written by then: nothing in them is the answer
	Offset  int64  `json:"offset,omitempty"`  // bytes of it that were acted on
}

// Renewed is the state in which a new process of the program takes the session up: its stdout
// is empty, and it wasn't greeted.
func (s State) Renewed() State {
	return State{Session: s.Session, Next: s.Next}
}

// Pipes are the program's streams.
type Pipes struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser // from State.Since on; it ends with the program
	// Written returns how many bytes the program has written to its stdout, read or not.
	Written func() (int64, error)
}

// ErrProgramEnded says that the program's stdout ended before the turn did.
var ErrProgramEnded = errors.New("the program ended before its turn did")

// ErrNoResume says that the program can't take up the session of an earlier process.
var ErrNoResume = errors.New("the program can't take up an earlier session")

// Options are what a dialog needs to know beside its protocol.
type Options struct {
	Dir        string        // absolute, in the sandbox: where the program works
	RPC        RPC           // of PlainRPC
	Result     Result        // of PlainRPC: where in the answer things are
	CancelWait time.Duration // how long the end of a cancelled turn is awaited; 0: 10 seconds
}

// EventKind is a kind of Event.
type EventKind string

// The kinds of event.
const (
	EventText     EventKind = "text"     // a part of the answer
	EventThought  EventKind = "thought"  // a part of what it thinks
	EventTool     EventKind = "tool"     // a tool call, or news of it
	EventPlan     EventKind = "plan"     // what it means to do
	EventStrange  EventKind = "strange"  // a line that isn't of the protocol
	EventRefused  EventKind = "refused"  // a request for what isn't offered
	EventProgress EventKind = "progress" // anything else
)

// Event is what the program told of a turn.
type Event struct {
	Kind EventKind
	Text string          // bounded; "" where it has none
	ID   string          // of the tool call
	Raw  json.RawMessage // of the protocol; bounded; nil where it is too large
	Tool api.ToolNews    // of the tool call
}

// Permission is a request of the program to be let do something.
type Permission struct {
	ID      string // the program's
	Text    string // what it wants; bounded
	Options []Option
}

// Option is a way to answer a Permission.
type Option struct {
	ID     string
	Name   string
	Allows bool
}

// Listener hears what happens in a turn.
type Listener interface {
	// Keep stores the state with the events that led to it. What is kept isn't told again.
	Keep(ctx context.Context, s State, events []Event) error
	// Again hears an event that an earlier process has kept, before others and in their order.
	Again(e Event)
	// Permit decides, and may wait for a person. Its answer is the id of an option, or "" to
	// refuse.
	Permit(ctx context.Context, p Permission) (option string, err error)
}

// Reply is the end of a turn.
type Reply struct {
	Text    string          // all parts of the answer
	Stop    string          // why it ended, in the protocol's word
	Usage   json.RawMessage // as the program tells it; nil where it doesn't
	CostUSD json.Number     // "" where the program doesn't tell
}

// Dialog talks with a program in its protocol: one turn at a time.
type Dialog interface {
	// Turn gives the program a prompt and returns its reply. Of a state with a pending prompt it
	// goes on with that one, and the text isn't sent again. When ctx ends the program is told
	// to stop the turn; the error is the cause of that. Other errors are the Listener's, a
	// *ProgramError, ErrNoResume or ErrProgramEnded.
	// After an error only a new dialog, with a new process of the program, can go on, except
	// where Reusable says otherwise.
	Turn(ctx context.Context, text string) (Reply, error)
	// State is the state after the last turn. Whoever stores the end of a turn stores it with that:
	// of each state that was kept within the turn, Turn returns the same reply again.
	State() State
	// Reusable reports whether another turn may follow the last one.
	Reusable() bool
	// Close closes both pipes and waits until nobody uses them.
	Close()
}

// cancelWait is how long the end of a cancelled turn is awaited by default.
const cancelWait = 10 * time.Second

// NewDialog returns a dialog in the protocol, which goes on from a state. It reads Stdout at
// once, and closes the pipes only by its Close.
func NewDialog(protocol Protocol, pipes Pipes, from State, l Listener, o Options) (Dialog, error) {
	if from.Since < 0 || from.Since > from.Offset || from.Next < 0 {
		return nil, fault.New(fault.Internal, "the state of a dialog is damaged: since %d, offset %d, next %d",
			from.Since, from.Offset, from.Next)
	}
	d := &dialog{
		listener: l, wait: cmp.Or(o.CancelWait, cancelWait), written: pipes.Written,
		state: from, at: from.Since, replayed: from.Offset,
	}
	framing := Lines
	switch protocol {
	case ACP:
		d.speaker = acp{dir: o.Dir}
	case StreamJSON:
		d.speaker = streamJSON{}
	case PlainRPC:
		d.speaker, framing = plainRPC{rpc: o.RPC, result: o.Result}, o.RPC.Framing
	default:
		return nil, fault.New(fault.Unsupported, "protocol %q is none of %s, %s and %s", protocol, ACP, StreamJSON,
			PlainRPC)
	}
	d.in = &input{to: pipes.Stdin, framing: framing}
	d.out = readOutput(pipes.Stdout, framing)
	return d, nil
}
