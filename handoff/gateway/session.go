package gateway

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/handoff/gateway/live"
	"github.com/agent-on-demand/aod/handoff/gateway/script"
)

// Session is what the gateway knows of one run. Only Run is needed; without Models the run may
// ask for nothing.
type Session struct {
	Run, Root string // ids of the run, and of the run at the top of its tree
	Unit      string // for hints: whose agent.yaml names models

	Models    []string  // the names that the run may ask for
	MaxTokens int64     // the cap of each answer and its default, as agent.yaml has it; 0: the model's
	Deadline  time.Time // of the run; zero is none
	// Limited reports whether a budget holds, so that a request needs a bound, and whether one of cost does, so that a
	// model needs a price; nil: none.
	Limited func() (holds, cost bool)

	Ledger   Ledger   // nil: nothing is counted
	Recorder Recorder // nil: nothing is told
	Content  bool     // that the recorder gets requests and answers, not only figures
	Listener Listener // nil: nobody is told what a model says before it has said all
	Turn     Turn     // nil: the run has no slot to give
	Answers  Answers  // by Idempotency-Key; nil: remembered by the handler, up to a bound
	Cache    Answers  // by the key of a cassette; nil: none

	Script *script.Script     // answers instead of every provider; nil: they do
	Replay *cassette.Player   // answers without a provider, and fails where it has none
	Resume *cassette.Player   // answers without a provider what it has; nil: nothing
	Record *cassette.Recorder // is told each answer of a provider
}

// limited reports whether any budget holds, and one of cost.
func (s *Session) limited() (holds, cost bool) {
	if s.Limited == nil {
		return false, false
	}
	return s.Limited()
}

// Call is one request that may go to a provider.
type Call struct {
	ID        string // unlike that of any other call
	Run, Root string
	Dialect   catalog.Dialect
	Model     string // as the run asks for it
	Provider  string // by its name; "" until one is asked
	Upstream  string // the provider's name for the model
	Key       string // the Idempotency-Key; "" is none
	Digest    string // of the body, SHA-256 in hex
	Stream    bool
	MaxTokens int64 // the cap of the answer
	Again     bool  // an earlier attempt of it was charged for
	Beside    bool  // another attempt of it is under way
}

// Usage is what a provider counts, in tokens.
type Usage struct {
	Input      int64 // all of it, also what was cached
	Cached     int64 // read from the provider's cache
	CacheWrite int64 // written to it
	Output     int64 // all of it, also reasoning
	Reasoning  int64
}

// Spent is what a request took.
type Spent struct {
	Usage     Usage
	Amount    ledger.Amount
	Estimated bool // charged in full, because nobody said what it took
}

// Ledger holds the budgets of the run and of all runs above it.
type Ledger interface {
	// Reserve sets the worst that a request can cost aside, and stores that, before it is
	// forwarded. It waits for what has no room until others have settled, but for a call with
	// Beside. An error is a *ledger.Excess, a *Refusal or the cause of ctx's end; any other one is ours.
	Reserve(ctx context.Context, c Call, worst ledger.Amount) (Hold, error)
}

// Hold is what was set aside for one request.
type Hold interface {
	// Settle stores what was spent in its place. It is called once, with a context that
	// outlives the request.
	Settle(ctx context.Context, c Call, spent Spent) error
}

// Turn is the slot of a run, which others have while it waits for a model.
type Turn interface {
	// Await calls wait without the slot, unless ctx has ended before.
	Await(ctx context.Context, wait func())
	// Regain waits for the slot, and reports whether the run has it.
	Regain(ctx context.Context) bool
}

// Recorder is told of each call when it is over, also of refused ones. It may be called at
// the same time, and must not be slow.
type Recorder interface{ Record(e Exchange) }

// Listener is told what a model says while it does.
type Listener interface {
	// Listen is called when a provider is asked; nil: nobody wants to hear this answer. Where somebody does, a
	// provider is asked for a stream, also if the run gets a plain answer.
	Listen() Ear
}

// Ear hears one answer of a provider, which may break off and be asked for anew. It must not be slow.
type Ear interface {
	Hear(said live.Piece)
	Close() // there is no more
}

// Answers keep answers by a key.
type Answers interface {
	// Find returns what was kept under a key, and the digest of the body that it answers.
	Find(ctx context.Context, key string) (a cassette.Answer, digest string, found bool)
	Keep(ctx context.Context, key, digest string, a cassette.Answer)
}

// Source says who answered.
type Source string

// The sources.
const (
	FromProvider Source = "provider"
	FromCache    Source = "cache"
	FromReplay   Source = "replay"
	FromKey      Source = "key" // the stored answer of an Idempotency-Key
)

// Exchange is one call that is over.
type Exchange struct {
	Call     Call
	Source   Source
	Status   int
	Rule     string // of the refusal, "" for none
	Spent    Spent
	About    About
	Server   string // the host of the provider; "" for a script, and where none was asked
	Attempts int    // at providers
	Raced    string // the provider that was asked at the same time, and lost; "": there was none
	Started  time.Time
	First    time.Duration // until the first content; 0 where there was none
	Took     time.Duration
	// Request and Answer are what came and what went, whole; nil without Content. Cut says
	// that the answer was too long to be kept.
	Request, Answer []byte
	Cut             bool
}
