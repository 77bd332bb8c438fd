package a2a

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
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

	reached atomic.Bool // the SDK has called the handler
	ready   atomic.Bool // the handler has something to tell

	mu      sync.Mutex
	failure *refusal // why it told nothing
	heard   reception
}

// reception is what a client has heard when it has its answer: what became of its message.
type reception struct {
	run    string // "": it sent none
	resend string // the digest of its message
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf returns the call of a context. Every entrance has made one.
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

func (c *call) tells(run, resend string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = reception{run: run, resend: resend}
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
