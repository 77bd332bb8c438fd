// Package flow is what a flow is: a graph of nodes over one shared state (specification
// "Universal Agents"). Parse reads flow.yaml, Flow.Check holds it against the contracts of
// the units that it names, and Walk goes through it.
//
// A walk does nothing by itself: a Host makes the calls, keeps the steps and asks people. What
// a Host has kept is never evaluated again: a walk over the kept steps of an earlier one goes
// on where that ended.
//
// It knows contracts, and nothing of stores, engines or how a run is made.
//
// Its Go API may change with every release: see docs/stability.md.
package flow
