package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
)

// bill is what a call can take, and what it took.
type bill struct {
	ledger Ledger // nil: nothing is counted
	log    *slog.Logger
	call   *Call
	price  *catalog.Price // of the provider that is asked

	worst ledger.Amount
	hold  Hold // of the attempt under way; nil: nothing is set aside
	spent Spent
}

// reserve sets the worst aside, unless an earlier attempt that took nothing has.
func (b *bill) reserve(ctx context.Context) (err error) {
	if b.ledger == nil || b.hold != nil {
		return nil
	}
	b.hold, err = b.ledger.Reserve(ctx, *b.call, b.worst)
	return err
}

// giveBack settles what was set aside for an attempt that nobody charges for.
func (b *bill) giveBack(ctx context.Context) {
	if b.hold != nil {
		b.settle(ctx, Spent{})
	}
}

// settleInFull charges for what nobody has counted.
func (b *bill) settleInFull(ctx context.Context) { b.settle(ctx, b.inFull()) }

func (b *bill) inFull() Spent { return Spent{Amount: b.worst, Estimated: true} }

// settleTime is how long it may take to store what a request took.
const settleTime = 10 * time.Second

// settle counts what a request has spent, in place of what was set aside. Without anything
// set aside it only adds up.
func (b *bill) settle(ctx context.Context, spent Spent) {
	b.addUp(spent)
	if b.hold == nil {
		return
	}
	hold := b.hold
	b.hold = nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := hold.Settle(ctx, *b.call, spent); err != nil {
		b.log.Error("model call not settled", "run", b.call.Run, "model", b.call.Model, "error", err)
	}
}

func (b *bill) addUp(spent Spent) {
	b.spent.Usage = spent.Usage
	b.spent.Amount = b.spent.Amount.Plus(spent.Amount)
	b.spent.Estimated = b.spent.Estimated || spent.Estimated
}

// charge is what an answer took: by the provider's usage, also where that is over the bound, or
// in full where there is none.
func (b *bill) charge(m *meter) Spent {
	if !m.known {
		return b.inFull()
	}
	amount := ledger.Amount{Tokens: m.usage.Input + m.usage.Output, Cost: cost(m.usage, b.price)}
	if amount.Tokens > b.worst.Tokens {
		b.log.Warn("model call over its bound", "run", b.call.Run, "model", b.call.Model, "provider", b.call.Provider,
			"tokens", amount.Tokens, "bound", b.worst.Tokens)
	}
	return Spent{Usage: m.usage, Amount: amount}
}
