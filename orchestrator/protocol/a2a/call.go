package a2a

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// call is a request that is being answered.
type call struct {
	unit   string // that is asked; "": any, by the message
	base   string // of the server's addresses: scheme and host
	trace  string // the caller's trace context
	legacy bool   // version 0.3
	grpc   bool
	// immediate says, where it isn't nil, that a message's sender waits for nothing, whatever the
	// SDK made of its parameters.
	immediate *bool

	emptyList atomic.Bool // the answer is a list of nothing
	reached   atomic.Bool // the SDK has called the handler
	ready     atomic.Bool // the handler has something to tell

	mu      sync.Mutex
	failure *refusal        // why it told nothing
	card    json.RawMessage // what it tells, where the SDK can't write it
	heard   reception
	held    holding   // of what it is about to tell
	sending []holding // of the events of a stream that are being sent, in their order
}

// holding is memory that is counted.
type holding struct {
	bytes int64
	free  []func()
}

func (h holding) letGo() {
	for _, free := range h.free {
		free()
	}
}

// reception is what a client has heard when it has its answer: what became of its message.
type reception struct {
	run    string // "": it sent none
	resend string // the digest of its message
	owner  string // whose it is: another's may be just the same
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf returns the call of a context. Every binding has made one.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// fail keeps why a call is refused, unless it has told something already.
func (c *call) fail(r *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ready.Load() {
		c.failure = r
	}
}

// showsCard has the call answered with a card as it is written here.
func (c *call) showsCard(card []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.card = card
}

// shownCard returns the card that the call is answered with, or nil.
func (c *call) shownCard() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.card
}

func (c *call) tells(ctx context.Context, run, resend string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = reception{run: run, resend: resend, owner: httpwire.OwnerOf(ctx)}
}

// hold counts bytes of what the call is about to tell. The error is an Unavailable fault: there is no
// memory for them.
func (c *call) hold(ctx context.Context, n int64) error {
	free, err := bytegate.Hold(ctx, n)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held.bytes += n
	c.held.free = append(c.held.free, free)
	return nil
}

// holds returns how many bytes the call holds of what it is about to tell.
func (c *call) holds() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held.bytes
}

// sends notes that an event of a stream is about to be sent. With the last one of several goes what
// the call holds for them.
func (c *call) sends(last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var with holding
	if last {
		with, c.held = c.held, with
	}
	c.sending = append(c.sending, with)
}

// sent lets go of what was held for the event that was sent first of those that are.
func (c *call) sent() {
	c.mu.Lock()
	var first holding
	if len(c.sending) > 0 {
		first, c.sending = c.sending[0], c.sending[1:]
	}
	c.mu.Unlock()
	first.letGo()
}

// drop lets go of what the call tells nothing of.
func (c *call) drop() {
	c.mu.Lock()
	var held holding
	held, c.held = c.held, held
	c.mu.Unlock()
	held.letGo()
}

// letGo lets go of all that the call holds.
func (c *call) letGo() {
	c.drop()
	c.mu.Lock()
	sending := c.sending
	c.sending = nil
	c.mu.Unlock()
	for _, held := range sending {
		held.letGo()
	}
}

// end returns how a call ended.
func (c *call) end() (reached bool, failure *refusal, heard reception) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reached.Load(), c.failure, c.heard
}

// waits reads from the parameters of version 0.3 whether a message's sender waits for the end.
// Who doesn't say so doesn't.
func (c *call) waits(params []byte) {
	var raw struct {
		Configuration struct {
			Blocking bool `json:"blocking"`
		} `json:"configuration"`
	}
	_ = json.Unmarshal(params, &raw) // what has another type is the SDK's to find
	immediate := !raw.Configuration.Blocking
	c.immediate = &immediate
}
