// Package capsuleapi is the HTTP API through which a running capsule asks for what is outside of it: for calls of other
// units by the broker of its run, for its invocation, for people.
//
// The main path, in call order:
//
//	Handler.ServeHTTP    one handler a run: the socket says who asks
//	handoffs.post        a call is asked for; read strictly, and from there on the broker's
//	handoffs.answerWith  what became of it; answerForeign says it as another orchestrator does
//	responder.answer     the one place where an error becomes an answer
//
// A Dispatcher stands before the handler of a sandbox that was started ahead of its run. A Mount adds another protocol
// to the handler, which knows the caller: models, upstreams, the network by name and sealed MCP servers are such.
//
// What a capsule sends is hostile. The package knows no rule of calls: those are the broker's.
//
// Handler.Close (handler.go) returns when no request of any protocol is under way. messages.get (messages.go) waits for
// messages, ArtifactMount (artifact.go) shows files, MemoryMount (memory.go) keeps values, asking.post (ask.go) asks
// people.
//
// Its Go API may change with every release: see docs/stability.md.
package capsuleapi
