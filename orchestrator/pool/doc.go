// Package pool keeps warm sandboxes: containers that are started before their runs are
// known. Each serves one run, or as many as its unit allows.
//
//	Pool.Run      fills the pool, one sandbox after the other, while it disturbs no run
//	Pool.Acquire  gives a sandbox to a run that wants one
//	Pool.Release  takes it back, where its unit may serve another run with it
//	Pool.Discard  removes sandboxes that nobody needs
//
// It must not know runs, the store, HTTP, or how a sandbox is started: a Source does that.
//
// Its Go API may change with every release: see docs/stability.md.
package pool
