package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"

	"github.com/agent-on-demand/aod/api"
)

// Service makes the runs. Errors are faults, or the cause of ctx's end.
type Service interface {
	// Units lists the units, also those with a problem.
	Units(context.Context) ([]api.Unit, error)
	// Schema returns a unit's schema.json, or a NotFound fault.
	Schema(ctx context.Context, unit string) ([]byte, error)
	// Submit accepts a run and returns it as it stands, a second later at most: it needn't wait
	// for the run. It reads the files before it returns.
	Submit(context.Context, Submission) (api.Record, error)
	// Get returns a run as it stands. One that the client may not know is a NotFound fault.
	Get(ctx context.Context, id string) (api.Record, error)
	// Await returns the run at its end, or as it stands when ctx ends.
	Await(ctx context.Context, id string) (api.Record, error)
	// AwaitAsked is Await that returns as well when the run asks something.
	AwaitAsked(ctx context.Context, id string) (api.Record, error)
	// Asked lists what a run asks people and nobody has answered, the oldest first.
	Asked(ctx context.Context, run string) ([]api.Question, error)
	// Answer answers a question. One that is answered otherwise, or open no more, is a Conflict fault.
	Answer(ctx context.Context, question string, answer api.Answer) error
	// Events yields the events of a run after the given one, until its end.
	Events(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error]
	// Cancel cancels a run. If it has ended already, the error is a Conflict fault.
	Cancel(ctx context.Context, id, reason string) (api.Record, error)
	// Open opens a file of a run.
	Open(ctx context.Context, id string, file api.File) (io.ReadCloser, error)
}

// Submission asks for one run of a unit.
type Submission struct {
	Unit        string
	Input       json.RawMessage // its file fields hold the names of Files
	Files       []File
	Metadata    map[string]string // what is kept with the run
	TraceParent string            // the caller's W3C trace context; "" for none
}

// File is an input file. Its name is unique in its submission.
type File struct {
	Pointer string // where the input names it
	Name    string
	Content io.Reader
}

// Tool is a unit under a name of its own.
type Tool struct {
	Name, Unit  string
	Description string // "": the unit's
}

// Options are the settings of a Server.
type Options struct {
	Tools   []Tool   // just these; nil: all units, under their own names
	Units   []string // of all units just these; nil: all
	Files   string   // a directory below which clients name files; "": none
	Out     string   // a directory for the files of results; "": they stay with their runs
	URL     string   // of the server that has the files of runs, for what is too large; "": none
	Version string   // of the program
	// Sessions are those that one client has at a time, over HTTP; 0 is 100. For a further one the
	// one ends that is idle for longest.
	Sessions int
	// Admit counts a session of a client over HTTP until leave is called, or refuses it; nil: each is admitted.
	Admit  func(ctx context.Context) (leave func(), err error)
	Spans  bool // each call has a span, below which that of its run is
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Sessions = cmp.Or(o.Sessions, DefaultSessions)
	if o.Admit == nil {
		o.Admit = func(context.Context) (func(), error) { return func() {}, nil }
	}
	o.Version = cmp.Or(o.Version, "dev")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
