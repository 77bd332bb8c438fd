// Package ledger counts what a tree of accounts has spent, so that together they never pass a limit of any of them.
//
// An account has limits and perhaps a parent. Tree.Reserve sets an amount aside on every account of a path, before it
// is spent: what has no room now but would have when others have settled waits, what can't have any is refused with an
// *Excess. Hold.Settle puts what was really spent in its place, and wakes whoever waits.
//
// All numbers are integers. The package doesn't know what is counted, and stores nothing.
//
// It must not know what is counted.
//
// Its Go API may change with every release: see docs/stability.md.
package ledger

import (
	"context"
	"fmt"
	"sync"
)

// Amount is tokens and what they cost, in billionths of a currency.
type Amount struct{ Tokens, Cost int64 }

// Plus returns the sum of two amounts.
func (a Amount) Plus(b Amount) Amount { return Amount{a.Tokens + b.Tokens, a.Cost + b.Cost} }

// Minus returns the difference of two amounts.
func (a Amount) Minus(b Amount) Amount { return Amount{a.Tokens - b.Tokens, a.Cost - b.Cost} }

// Excess says that an amount has no room in a limit of an account, and never will have.
type Excess struct {
	Account string // whose limit it is
	Cost    bool   // that it is the limit of cost, not the one of tokens
	Limit   int64
	Spent   int64
	Needed  int64
}

func (e *Excess) Error() string {
	what := "tokens"
	if e.Cost {
		what = "billionths"
	}
	return fmt.Sprintf("%d %s are needed, and %d of %d are spent", e.Needed, what, e.Spent, e.Limit)
}

// account is what one knot of the tree may spend, and has.
type account struct {
	id       string
	parent   *account
	limit    Amount // 0 bounds nothing
	spent    Amount // settled
	reserved Amount
}

// Tree is a tree of accounts. All methods may be called at the same time.
type Tree struct {
	mu       sync.Mutex
	accounts map[string]*account
	waiting  []*waiter // in the order of their coming
}

// waiter is a reservation that has no room yet.
type waiter struct {
	path  []*account
	worst Amount
	done  chan error // holds one
}

// New returns a tree without accounts.
func New() *Tree { return &Tree{accounts: map[string]*account{}} }

// Open adds an account below another one, or at the top where parent is "". A limit of 0
// bounds nothing. One that is there keeps what it has spent and gets the limit.
func (t *Tree) Open(id, parent string, limit Amount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.accounts[id]
	if a == nil {
		a = &account{id: id, parent: t.accounts[parent]}
		t.accounts[id] = a
	}
	a.limit = limit
}

// Close forgets an account. What it has spent stays counted above it.
func (t *Tree) Close(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.accounts, id)
}

// Restore adds what an earlier process has spent to an account and all above it.
func (t *Tree) Restore(id string, spent Amount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := t.accounts[id]; a != nil; a = a.parent {
		a.spent = a.spent.Plus(spent)
	}
	t.wake()
}

// Spent returns what was settled on an account, with all below it, and what is set aside.
func (t *Tree) Spent(id string) (spent, reserved Amount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.accounts[id]; a != nil {
		return a.spent, a.reserved
	}
	return Amount{}, Amount{}
}

// Reserve sets an amount aside on an account and all above it. It waits until there is room,
// in the order of asking. The error is an *Excess, or the cause of ctx's end. An account that
// there isn't has no limit.
func (t *Tree) Reserve(ctx context.Context, id string, worst Amount) (*Hold, error) {
	t.mu.Lock()
	w := &waiter{worst: worst, done: make(chan error, 1)}
	for a := t.accounts[id]; a != nil; a = a.parent {
		w.path = append(w.path, a)
	}
	t.waiting = append(t.waiting, w)
	t.wake()
	t.mu.Unlock()
	select {
	case err := <-w.done:
		return t.hold(w, err)
	case <-ctx.Done():
	}
	if err, decided := t.leave(w); decided {
		return t.hold(w, err)
	}
	return nil, context.Cause(ctx)
}

func (t *Tree) hold(w *waiter, err error) (*Hold, error) {
	if err != nil {
		return nil, err
	}
	return &Hold{tree: t, path: w.path, reserved: w.worst}, nil
}

// leave takes a waiter out, unless what it waits for has been decided.
func (t *Tree) leave(w *waiter) (err error, decided bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case err = <-w.done:
		return err, true
	default:
	}
	for i, other := range t.waiting {
		if other == w {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			break
		}
	}
	t.wake() // whoever stood behind it
	return nil, false
}

// wake decides of all that wait, in their order. Nobody passes another one by on an account
// in which the other one lacks room. The caller holds the lock.
func (t *Tree) wake() {
	full := map[*account]bool{}
	left := t.waiting[:0]
	for _, w := range t.waiting {
		if err := w.impossible(); err != nil {
			w.done <- err
			continue
		}
		if w.waits(full) {
			left = append(left, w)
			continue
		}
		for _, a := range w.path {
			a.reserved = a.reserved.Plus(w.worst)
		}
		w.done <- nil
	}
	clear(t.waiting[len(left):])
	t.waiting = left
}

// impossible returns an *Excess where room would be lacking if all others took nothing.
func (w *waiter) impossible() error {
	for _, a := range w.path {
		sum := a.spent.Plus(w.worst)
		if a.limit.Tokens > 0 && sum.Tokens > a.limit.Tokens {
			return &Excess{Account: a.id, Limit: a.limit.Tokens, Spent: a.spent.Tokens, Needed: w.worst.Tokens}
		}
		if a.limit.Cost > 0 && sum.Cost > a.limit.Cost {
			return &Excess{Account: a.id, Cost: true, Limit: a.limit.Cost, Spent: a.spent.Cost, Needed: w.worst.Cost}
		}
	}
	return nil
}

// waits reports whether room is lacking now, and marks where.
func (w *waiter) waits(full map[*account]bool) bool {
	waits := false
	for _, a := range w.path {
		sum := a.spent.Plus(a.reserved).Plus(w.worst)
		lacks := a.limit.Tokens > 0 && sum.Tokens > a.limit.Tokens || a.limit.Cost > 0 && sum.Cost > a.limit.Cost
		if lacks {
			full[a] = true
		}
		waits = waits || full[a]
	}
	return waits
}

// Hold is an amount that is set aside.
type Hold struct {
	tree     *Tree
	path     []*account
	reserved Amount
	once     sync.Once
}

// Settle counts what was spent instead of what was set aside. Only the first call counts.
func (h *Hold) Settle(spent Amount) {
	h.once.Do(func() {
		h.tree.mu.Lock()
		defer h.tree.mu.Unlock()
		for _, a := range h.path {
			a.reserved = a.reserved.Minus(h.reserved)
			a.spent = a.spent.Plus(spent)
		}
		h.tree.wake()
	})
}
