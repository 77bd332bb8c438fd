package bytegate

import (
	"context"
	"sync"
)

// Account is for whom bytes are held, and at which gate. The context of a request has one, so that
// whatever the request leads to counts for whoever made it. The zero Account counts nothing. It is
// safe for concurrent use.
type Account struct {
	mu     sync.Mutex
	gate   *Gate
	holder string
}

type accountKey struct{}

// With returns a context with an account.
func With(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// Counting returns a context of which all that is held counts at a gate, for a holder.
func Counting(ctx context.Context, g *Gate, holder string) context.Context {
	return With(ctx, &Account{gate: g, holder: holder})
}

// Of returns the account of a context; nil: it has none.
func Of(ctx context.Context) *Account {
	a, _ := ctx.Value(accountKey{}).(*Account)
	return a
}

// CountAt has what is held from now on count at a gate, for a holder. On nil it does nothing.
func (a *Account) CountAt(g *Gate, holder string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gate, a.holder = g, holder
}

// At returns the gate and the holder; nil and "" where nothing counts, also on nil.
func (a *Account) At() (*Gate, string) {
	if a == nil {
		return nil, ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gate, a.holder
}

// HolderOf returns for whom the bytes of a context count; "" where nothing counts.
func HolderOf(ctx context.Context) string {
	_, holder := Of(ctx).At()
	return holder
}

// Hold takes n bytes for the holder of a context, such as for an answer, until release is called.
// The error is an Unavailable fault: there is no room. Where nothing counts, there is.
func Hold(ctx context.Context, n int64) (release func(), err error) {
	gate, holder := Of(ctx).At()
	if gate == nil {
		return func() {}, nil
	}
	return gate.Take(holder, n)
}
