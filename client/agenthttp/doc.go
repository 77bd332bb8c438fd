// Package agenthttp speaks the agent HTTP contract: the two endpoints for calling
// agents of other platforms, their documents, and the rules for both.
//
// In call order: New checks the address; Client.Run asks for one answer, Client.Stream for
// events and then the answer; call makes the one request of each, by Do; follow reads a
// stream; ParseResponse, final check the answer against the rules of internal/document.
// Package check calls an agent to judge it by all of them.
//
// ParseRequest and the JSON forms of Request and Response are for servers of the contract.
//
// Agents and their callers are hostile: everything they send is bounded in size and
// depth. No error or log holds a value from a request, an answer or a secret: they
// name fields, rules and status codes, and the caller's own address.
//
// It must not know runs, units, engines, or how a server is made.
//
// Its Go API may change with every release: see docs/stability.md.
package agenthttp
