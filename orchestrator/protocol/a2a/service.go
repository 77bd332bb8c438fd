package a2a

import (
	"cmp"
	"context"
	"io"
	"iter"
	"log/slog"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// Service makes the runs. Errors are faults, or the cause of ctx's end.
type Service interface {
	// Admits says whether the context's client may ask the agent of a unit: the error is a NotFound
	// fault where there is none for it, Forbidden where it may not.
	Admits(ctx context.Context, unit string) error
	// FullName returns the name of the unit that the context's client means by one; the name itself, where
	// there is none.
	FullName(ctx context.Context, unit string) string
	// Units lists the units, also those with a problem.
	Units(context.Context) ([]api.Unit, error)
	// Agent returns a unit as an agent, or a NotFound fault.
	Agent(ctx context.Context, unit string) (Agent, error)
	// Session returns a session, or a NotFound fault.
	Session(ctx context.Context, id string) (api.Session, error)
	// NewSpool returns what receives the files of a submission.
	NewSpool() (*spool.Spool, error)
	// CreateSession begins a session of a unit, without a project.
	CreateSession(ctx context.Context, unit string, files *spool.Spool) (api.Session, error)
	CloseSession(ctx context.Context, id, reason string) (api.Session, error)
	// Submit accepts a run, or joins the one that Resend names, and returns it as it stands. The files are
	// its own from then on.
	Submit(context.Context, spool.Submission) (_ api.Record, joined bool, _ error)
	// SayResent tells a run that goes on something, without files. If it has ended, the error is a
	// Conflict fault. The same digest again changes nothing, until it is delivered.
	SayResent(ctx context.Context, run, resend string, message api.MessageEvent) error
	// WasTold reports whether a run was told what has a digest, by SayResent or AnswerResent, and
	// its client has not heard of that.
	WasTold(ctx context.Context, run, resend string) (bool, error)
	// Delivered says that the client has heard what became of its message to the run.
	Delivered(ctx context.Context, run, resend string) error
	// Question returns a question, also one that isn't open any more.
	Question(ctx context.Context, id string) (api.Question, error)
	// AnswerResent answers a question of a run. One that has another answer is a Conflict fault. The same
	// digest again changes nothing, until it is delivered.
	AnswerResent(ctx context.Context, run, resend, question string, answer api.Answer) error
	// Get returns a run as it stands, or a NotFound fault.
	Get(ctx context.Context, run string) (api.Record, error)
	// Await returns the run at its end, or as it stands when ctx ends.
	Await(ctx context.Context, run string) (api.Record, error)
	// AwaitAsked returns the run when it has ended or asks something, or as it stands when ctx ends.
	AwaitAsked(ctx context.Context, run string) (api.Record, error)
	// Changed returns a page of the runs that nobody's run asked for, those that changed last first:
	// without input and output, those that have ended without their questions.
	Changed(context.Context, api.ChangedFilter) (api.ChangedPage, error)
	// Past yields the events that a run has had after the one of a number.
	Past(ctx context.Context, run string, after int64) iter.Seq2[api.Event, error]
	// Events yields the events of a run after the one of a number, until its end.
	Events(ctx context.Context, run string, after int64) iter.Seq2[api.Event, error]
	// Cancel cancels a run. If it has ended already, the error is a Conflict fault.
	Cancel(ctx context.Context, run, reason string) (api.Record, error)
	// Open opens a file of a run.
	Open(ctx context.Context, run, name string) (io.ReadCloser, error)
	// OpenArtifact opens a file of an artifact of a run.
	OpenArtifact(ctx context.Context, run, artifact, name string) (io.ReadCloser, error)
	// Patch opens what a run changed in its workspace, as a patch.
	Patch(ctx context.Context, run string) (io.ReadCloser, error)
}

// Agent is a unit as an agent.
type Agent struct {
	api.Unit
	Schema   []byte   // its schema.json
	Text     string   // the field of its input that takes text; "": the customary one
	Tags     []string // of its skill
	Sessions bool     // it is interactive: a context is a session
}

// Push keeps where the changes of runs are told. Errors are faults; those about an address name
// the rule that it breaks, and nothing else.
type Push interface {
	// WithTargets has receivers told of the run that is asked for with a context, from its first event on.
	WithTargets(context.Context, []api.PushConfig) context.Context
	// CreatePush has the changes of a run told from now on. The same id again takes the place of
	// the one before.
	CreatePush(ctx context.Context, run string, config api.PushConfig) (api.Push, error)
	// Push returns one of a run's, or a NotFound fault.
	Push(ctx context.Context, run, id string) (api.Push, error)
	Pushes(ctx context.Context, run string) ([]api.Push, error)
	// DeletePush forgets one. One that isn't there is a NotFound fault.
	DeletePush(ctx context.Context, run, id string) error
	// PushBacklog returns how many deliveries are still to be made.
	PushBacklog(context.Context) (int64, error)
}

// Caller is who makes a call over gRPC, by what the call bears.
type Caller struct{ Token, Team, Address string }

// Options are the settings of a Server.
type Options struct {
	Root      string                   // the unit whose card stands at the origin; "": an agent of all units
	Header    string                   // that has the token; "": Authorization
	NoAuth    bool                     // no token is needed
	Rate      int                      // messages of a unit in a minute; 0: no bound
	Rates     map[string]httpwire.Rate // of single units, in the place of Rate
	PublicURL string                   // of the server, without a path; "": as the request has it
	HTTP      string                   // HOST:PORT of the server, for those who come by gRPC and need its addresses
	TLS       bool                     // the server speaks TLS
	Private   bool                     // cards need a token as well
	GRPC      string                   // HOST:PORT at which clients reach gRPC; "": it is off
	Push      Push                     // nil: there is none
	MaxBytes  int64                    // of one request; 0 is 32 MiB
	Memory    *bytegate.Gate           // of what gRPC receives; nil: one of its own
	// Authorize is for gRPC: it takes who calls, and for which team, "" for all of the
	// token's, and returns a context that knows whose it is. Its errors are faults.
	Authorize func(ctx context.Context, of Caller) (context.Context, error)
	Version   string // of the program
	Logger    *slog.Logger
}

const defaultBytes = 32 << 20

func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, "dev")
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultBytes)
	if o.Memory == nil {
		o.Memory = bytegate.New(0)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// base is the beginning of the server's addresses, for a client that reached it at a host.
func (o Options) base(host string) string {
	if o.TLS {
		return cmp.Or(o.PublicURL, "https://"+host)
	}
	return cmp.Or(o.PublicURL, "http://"+host)
}
