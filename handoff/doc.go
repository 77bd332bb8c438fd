// Package handoff is the broker that a running capsule talks to: the HTTP handler behind
// its socket, and the rules under which it may call other units.
//
// The main path, in call order:
//
//	Handler.ServeHTTP  one handler a run: the socket says who asks
//	accept             the request, read strictly (ask)
//	permit             grant, unit, cycle, depth, deadline
//	argue              the size of the arguments, the callee's contract, the names of files
//	carry              those files, opened in outgoing through no link
//	Tree.Spend         the budget of calls, when nothing else stands against it
//	Runs.Start, Await  the orchestrator's
//	incoming.place     the callee's files, whole, into incoming
//
// A Parking stands before the handler of a sandbox that was started ahead of its run. A
// Mount adds another protocol to the handler, which knows the caller.
//
// A refusal names its rule and what would satisfy it. That a callee fails is an answer
// like any other. All that a capsule sends, and all that lies where it can write, is
// hostile.
//
// It knows nothing of engines, of the store or of how a run is made.
package handoff
