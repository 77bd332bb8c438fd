// Package handoff is the broker between units: the rules under which a run may call other
// units, and the HTTP API through which a running capsule asks for it.
//
// The main path, in call order:
//
//	Handler.ServeHTTP  one handler a run: the socket says who asks
//	readRequest        the request, read strictly
//	Broker.StartRead   from here on nothing knows HTTP
//	permit             grant, unit, cycle, depth, deadline
//	prepare            the size of the arguments, the callee's contract, the names of files
//	open               those files, opened in outgoing through no link, or by the caller
//	Tree.Spend         the budgets, when nothing else stands against the call
//	Runs.Start, Await  the orchestrator's
//	Broker.Deliver     the callee's files, whole, into incoming
//
// A Dispatcher stands before the handler of a sandbox that was started ahead of its run. A
// Mount adds another protocol to the handler, which knows the caller.
//
// A refusal names its rule and what would satisfy it. A callee that fails is an answer
// like any other. What a capsule sends, and what lies where it can write, is hostile.
// The package knows nothing of engines, of the store or of how a run is made.
//
// Its Go API may change with every release: see docs/stability.md.
package handoff
