// Package ledger counts what a tree of accounts has spent, so that together they never pass a limit of any of them.
//
// An account has limits and perhaps a parent; those of an account of windows hold for a day or a month each.
// Tree.Reserve sets an amount aside on every account of some paths, before it is spent: what has no room now but would
// have when others have settled waits, what can't have any is refused with an *Excess. Hold.Settle puts what was really
// spent in its place, and wakes whoever waits.
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
	"iter"
	"slices"
	"sync"
	"time"
)

// Amount is tokens and what they cost, in billionths of a currency.
type Amount struct{ Tokens, Cost int64 }

// Plus returns the sum of two amounts.
func (a Amount) Plus(b Amount) Amount { return Amount{a.Tokens + b.Tokens, a.Cost + b.Cost} }

// Minus returns the difference of two amounts.
func (a Amount) Minus(b Amount) Amount { return Amount{a.Tokens - b.Tokens, a.Cost - b.Cost} }

// Excess says that an amount has no room in a limit of an account, and never will have, or not before Opens.
type Excess struct {
	Account string // whose limit it is
	Window  string // by its name; "": the limit is one of all time
	Opens   time.Time
	Cost    bool // that it is the limit of cost, not the one of tokens
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

// account is what one knot of the tree may spend, and has: in each of its purses.
type account struct {
	id     string
	parent *account
	purses []*purse
}

// Tree is a tree of accounts. All methods may be called at the same time.
type Tree struct {
	mu       sync.Mutex
	accounts map[string]*account
	waiting  []*waiter // in the order of their coming
}

// waiter is a reservation that has no room yet.
type waiter struct {
	at    []*account
	worst Amount
	done  chan error // holds one
	path  []*purse   // in which it was set aside
	when  time.Time  // likewise
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
		a = &account{id: id, parent: t.accounts[parent], purses: []*purse{{}}}
		t.accounts[id] = a
	}
	a.purses[0].rule.Limit = limit
}

// OpenWindows adds an account at the top whose limits hold for a time each. Of one that is there the windows keep what
// was spent in them, and get their limits.
func (t *Tree) OpenWindows(id string, windows ...Window) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, now := t.accounts[id], time.Now()
	if a == nil {
		a = &account{id: id}
		t.accounts[id] = a
	}
	for _, w := range windows {
		p := a.window(w.Name, now)
		if p == nil {
			p = &purse{ends: w.Ends(now), spent: w.Spent}
			a.purses = append(a.purses, p)
		}
		p.rule = w
	}
	t.wake()
}

// Windows returns the windows of an account as they are now, with what was spent and set aside in each.
func (t *Tree) Windows(id string) (windows []Window) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.accounts[id]; a != nil {
		for _, p := range a.current(time.Now()) {
			w := p.rule
			w.Spent, w.Reserved = p.spent, p.reserved
			windows = append(windows, w)
		}
	}
	return windows
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
		a.purses[0].spent = a.purses[0].spent.Plus(spent)
	}
	t.wake()
}

// Spent returns what was settled on an account, with all below it, and what is set aside.
func (t *Tree) Spent(id string) (spent, reserved Amount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.accounts[id]; a != nil {
		return a.purses[0].spent, a.purses[0].reserved
	}
	return Amount{}, Amount{}
}

// Reserve sets an amount aside on accounts and all above them, in the windows of the moment. It waits until there is
// room, in the order of asking. The error is an *Excess, or the cause of ctx's end. An account that there isn't has no
// limit.
func (t *Tree) Reserve(ctx context.Context, worst Amount, ids ...string) (*Hold, error) {
	w := t.enter(worst, ids)
	for {
		turn, stop := t.turnOf(w)
		select {
		case err := <-w.done:
			stop()
			return t.hold(w, err)
		case <-turn:
			t.mu.Lock()
			t.wake()
			t.mu.Unlock()
			continue
		case <-ctx.Done():
			stop()
		}
		if err, decided := t.leave(w); decided {
			return t.hold(w, err)
		}
		return nil, context.Cause(ctx)
	}
}

// TryReserve is Reserve that doesn't wait; nil: there is no room now.
func (t *Tree) TryReserve(worst Amount, ids ...string) *Hold {
	w := t.enter(worst, ids)
	if err, decided := t.leave(w); !decided || err != nil {
		return nil
	}
	return &Hold{At: w.when, tree: t, path: w.path, reserved: w.worst}
}

// enter puts a reservation behind those that wait, and decides of it where it can.
func (t *Tree) enter(worst Amount, ids []string) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{worst: worst, done: make(chan error, 1)}
	for _, id := range ids {
		for a := t.accounts[id]; a != nil; a = a.parent {
			w.at = append(w.at, a)
		}
	}
	t.waiting = append(t.waiting, w)
	t.wake()
	return w
}

// turnOf returns what tells when the next of a waiter's windows begins; nil: it has none, or nothing to wait for.
func (t *Tree) turnOf(w *waiter) (turn <-chan time.Time, stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ends, now := time.Time{}, time.Now()
	for p := range w.purses(now) {
		if !p.ends.IsZero() && (ends.IsZero() || p.ends.Before(ends)) {
			ends = p.ends
		}
	}
	if ends.IsZero() || len(w.done) > 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(ends.Sub(now))
	return timer.C, func() { timer.Stop() }
}

func (t *Tree) hold(w *waiter, err error) (*Hold, error) {
	if err != nil {
		return nil, err
	}
	return &Hold{At: w.when, tree: t, path: w.path, reserved: w.worst}, nil
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
	if len(t.waiting) == 0 {
		return
	}
	full, now := map[*purse]bool{}, time.Now()
	left := t.waiting[:0]
	for _, w := range t.waiting {
		if err := w.impossible(now); err != nil {
			w.done <- err
			continue
		}
		if w.waits(full, now) {
			left = append(left, w)
			continue
		}
		w.path, w.when = slices.Collect(w.purses(now)), now
		for _, p := range w.path {
			p.reserved = p.reserved.Plus(w.worst)
		}
		w.done <- nil
	}
	clear(t.waiting[len(left):])
	t.waiting = left
}

// purses yields those in which the waiter needs room at a moment.
func (w *waiter) purses(now time.Time) iter.Seq[*purse] {
	return func(yield func(*purse) bool) {
		for _, a := range w.at {
			for _, p := range a.current(now) {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// impossible returns an *Excess where room would be lacking if all others took nothing.
func (w *waiter) impossible(now time.Time) error {
	for _, a := range w.at {
		for _, p := range a.current(now) {
			if excess := p.lacks(p.spent, w.worst); excess != nil {
				excess.Account = a.id
				return excess
			}
		}
	}
	return nil
}

// waits reports whether room is lacking now, and marks where.
func (w *waiter) waits(full map[*purse]bool, now time.Time) bool {
	waits := false
	for p := range w.purses(now) {
		if p.lacks(p.spent.Plus(p.reserved), w.worst) != nil {
			full[p] = true
		}
		waits = waits || full[p]
	}
	return waits
}

// Hold is an amount that is set aside.
type Hold struct {
	At time.Time // when it was set aside: in the windows of that moment it counts

	tree     *Tree
	path     []*purse
	reserved Amount
	once     sync.Once
}

// Settle counts what was spent instead of what was set aside. Only the first call counts.
func (h *Hold) Settle(spent Amount) {
	h.once.Do(func() {
		h.tree.mu.Lock()
		defer h.tree.mu.Unlock()
		for _, p := range h.path {
			p.reserved = p.reserved.Minus(h.reserved)
			p.spent = p.spent.Plus(spent)
		}
		h.tree.wake()
	})
}
