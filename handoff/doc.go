// Package handoff is the broker between units: the rules under which a run may call other units, and the files that go
// along.
//
// The main path, in call order:
//
//	Broker.StartRead   a request, which is read when it is its turn
//	Broker.permit      grant, unit, cycle, depth, deadline
//	Broker.prepare     the size of the arguments, the callee's contract, the names of files
//	outgoing.open      those files, opened in outgoing through no link, or by the caller
//	Tree.Spend         the budgets, when nothing else stands against the call
//	Runs.Start, Await  the orchestrator's
//	Broker.Deliver     the callee's files, whole, into incoming
//
// Capsules ask by HTTP, in capsuleapi; other code of ours calls the broker itself.
//
// A refusal names its rule and what would satisfy it. A callee that fails is an answer like any other. What a capsule
// sends, and what lies where it can write, is hostile. The package knows nothing of HTTP, of engines, of the store or
// of how a run is made.
//
// Whatever has a Caller makes calls by NewBroker (broker.go), without a sandbox: it hands over files that it has
// opened. Broker.Deliver (broker.go) remembers: the same question gets the same answer.
//
// Its Go API may change with every release: see docs/stability.md.
package handoff
