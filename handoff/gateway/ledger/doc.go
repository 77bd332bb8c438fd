// Package ledger counts what a tree of accounts has spent, so that together they never pass a
// limit of any of them.
//
// An account has limits and perhaps a parent. Tree.Reserve sets an amount aside on every
// account of a path, before it is spent: what has no room now but would have when others have
// settled waits, what can't have any is refused with an *Excess. Hold.Settle puts what was
// really spent in its place, and wakes whoever waits.
//
// All numbers are integers. The package doesn't know what is counted, and stores nothing.
//
// Its Go API may change with every release: see docs/stability.md.
package ledger
