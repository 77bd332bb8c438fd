package gateway

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/internal/pause"
)

// attemptsEach is how often a provider is asked, before the next one is.
const attemptsEach = 3

// ask gets an answer of a provider: a plain one whole, a stream up to its last event, which
// is held. It is kept then, and what it took is settled after that: where the process dies in
// between, the answer is there, and is charged in full. An upstream has to be closed, also
// after an error.
func (c *call) ask(ctx context.Context) (*upstream, error) {
	if err := c.bound(); err != nil {
		return nil, err
	}
	guess := c.q.guess()
	leave, err := c.gw.gate("model "+c.q.model).enter(ctx, c.s.Run, guess)
	if err != nil {
		return nil, err
	}
	defer func() { leave(guess - c.spent.Amount.Tokens) }()
	defer c.giveBack(ctx)
	up, err := c.attempt(ctx)
	if err != nil {
		return nil, err
	}
	c.source = FromProvider
	defer func() { c.about = up.meter.about }()
	if up.events != nil {
		if err := c.relay(ctx, up); err != nil {
			return up, err
		}
	}
	if c.meta.Key != "" {
		c.keep(ctx, c.kept.with(up), up.status)
	}
	c.settle(ctx, c.charge(&up.meter))
	up.leave() // the rest is the reader's time
	return up, nil
}

// giveBack settles what was set aside for an attempt that nobody charges for.
func (c *call) giveBack(ctx context.Context) {
	if c.hold != nil {
		c.settle(ctx, Spent{})
	}
}

// attempt asks one provider after the other, each up to three times, until one answers.
func (c *call) attempt(ctx context.Context) (*upstream, error) {
	var last *failure
	for _, r := range c.routes {
		for n := range attemptsEach {
			if n > 0 {
				if err := c.backOff(ctx, n); err != nil {
					return nil, err
				}
			}
			up, f := c.try(ctx, r)
			if f == nil {
				return up, nil
			}
			last = f
			if f.billed {
				c.settle(ctx, Spent{Amount: c.worst, Estimated: true})
				c.meta.Again = true
			}
			if f.next == nobody {
				return nil, f.refusal
			}
			if f.next == another {
				break
			}
		}
	}
	return nil, last.refusal
}

// backOff waits before another attempt: half a second that doubles, more or less.
func (c *call) backOff(ctx context.Context, n int) error {
	base := c.gw.opts.Backoff << (n - 1)
	return pause.For(ctx, base/2+rand.N(base)) //nolint:gosec // it spreads requests, and guards nothing
}

// try makes one attempt at one provider, when it is its turn there.
func (c *call) try(ctx context.Context, r route) (*upstream, *failure) {
	c.meta.Provider, c.meta.Upstream = r.use.Provider, r.use.Model
	if err := c.reserve(ctx); err != nil {
		return nil, &failure{refusal: refusalOf(err), next: nobody}
	}
	leave, err := c.gw.gate("provider "+r.use.Provider).enter(ctx, c.s.Run, 0)
	if err != nil {
		return nil, &failure{refusal: refusalOf(err), next: nobody}
	}
	c.attempts++
	up, f := c.open(ctx, r)
	if f != nil {
		leave(0)
		if f.after > 0 {
			c.gw.gate("provider " + r.use.Provider).pause(f.after)
		}
		return nil, f
	}
	up.leave = func() { leave(0) }
	return up, nil
}

// reserve sets the worst aside, unless an earlier attempt that took nothing has.
func (c *call) reserve(ctx context.Context) (err error) {
	if c.s.Ledger == nil || c.hold != nil {
		return nil
	}
	c.hold, err = c.s.Ledger.Reserve(ctx, c.meta, c.worst)
	return err
}

// settleTime is how long it may take to store what a request took.
const settleTime = 10 * time.Second

// settle counts what a request has spent, in place of what was set aside. Without anything
// set aside it only adds up.
func (c *call) settle(ctx context.Context, spent Spent) {
	c.spent.Usage = spent.Usage
	c.spent.Amount = c.spent.Amount.Plus(spent.Amount)
	c.spent.Estimated = c.spent.Estimated || spent.Estimated
	if c.hold == nil {
		return
	}
	hold := c.hold
	c.hold = nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := hold.Settle(ctx, c.meta, spent); err != nil {
		c.gw.opts.Logger.Error("model call not settled", "run", c.s.Run, "model", c.meta.Model, "error", err)
	}
}

// charge is what an answer took: by the provider's usage, also where that is over the bound, or
// in full where there is none.
func (c *call) charge(m *meter) Spent {
	if !m.known {
		return Spent{Amount: c.worst, Estimated: true}
	}
	amount := ledger.Amount{Tokens: m.usage.Input + m.usage.Output, Cost: cost(m.usage, c.model.Price)}
	if amount.Tokens > c.worst.Tokens {
		c.gw.opts.Logger.Warn("model call over its bound", "run", c.s.Run, "model", c.meta.Model, "provider",
			c.meta.Provider,
			"tokens", amount.Tokens, "bound", c.worst.Tokens)
	}
	return Spent{Usage: m.usage, Amount: amount}
}

// failure is an attempt that gave no answer.
type failure struct {
	refusal *Refusal
	next    next
	after   time.Duration // for which the provider wants to be left alone
	billed  bool          // the provider may charge for it
}

// next is who is asked after a failure.
type next uint8

const (
	same    next = iota // the same provider once more
	another             // the next of the model's
	nobody              // the failure is the answer
)

func (f *failure) hint(text string) *failure {
	f.refusal.Hint = text
	return f
}

func (f *failure) because(err error) *failure {
	f.refusal.err = err
	return f
}

// bill notes that the provider may charge for the attempt.
func (f *failure) bill() *failure {
	f.billed = true
	return f
}

// badKey is the failure of a provider whose key is of no use.
func badKey(format string, args ...any) *failure {
	return failed502(another, RuleKey, format, args...).hint("whoever runs this server sees more with: aod models")
}

func failed502(n next, rule, format string, args ...any) *failure {
	return &failure{next: n, refusal: refuse(http.StatusBadGateway, rule, format, args...)}
}
