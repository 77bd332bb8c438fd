// Package pool keeps warm sandboxes: containers that are started before their runs are known. Each serves one run, or
// as many as its unit allows.
//
//	Pool.Run      fills the pool, one sandbox after the other, while it disturbs no run
//	Pool.Acquire  gives a sandbox to a run that wants one
//	Pool.Release  takes it back, where its unit may serve another run with it
//	Pool.Discard  removes sandboxes that nobody needs
//
// How many: unitPool.wanted (unitpool.go). Pool.fillOne, Pool.next (fill.go) start one after the other. A sandbox is
// warm when its init is parked, or its program asks for its invocation. Pool.AwaitLull (pool.go) keeps what is left of
// an ended run until no run has or wants a slot, for a quarter of a second at most: the end of a container costs the
// engine more than a short run does. Any doubt about a reused sandbox discards it; those of a dead process are removed
// by their label.
//
// It must not know runs, the store, HTTP, or how a sandbox is started: a Source does that.
//
// Its Go API may change with every release: see docs/stability.md.
package pool
