// Package agentapi speaks the agent HTTP contract: the two endpoints for calling
// agents of other platforms, their documents, and the rules for both.
//
// Calling, in call order: New checks the address; Client.Run asks for one answer,
// Client.Stream for events and then the answer; call makes the one request of each;
// take, follow read the answer; ParseResponse, final check it against the rules.
//
// Checking: Check makes all calls that the rules need (gather), then judges the answers
// (the table checks). Client and Check judge by the same rules (rules.go).
//
// Decoder and Encoder are server-sent events to the letter; ParseRequest and the JSON
// forms of Request and Response are for servers of the contract.
//
// Agents and their callers are hostile: everything they send is bounded in size and
// depth. No error, report or log holds a value from a request, an answer or a secret: they
// name fields, rules and status codes, and the caller's own address.
//
// It must not know runs, units, engines, or how a server is made.
package agentapi
