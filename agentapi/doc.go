// Package agentapi speaks the agent HTTP contract: the two endpoints by which agents of
// other platforms are called, the documents that travel there, and the rules for both.
//
// Calling, in call order: New checks the address; Client.Run asks for one answer,
// Client.Stream for events and then the answer; call makes the one request of each;
// take, follow read what comes; ParseResponse, final hold it against the rules.
//
// Checking: Check asks an agent all that the rules are about (gather), then judges what
// came (the table checks). Client and Check judge by the same rules (rules.go).
//
// Decoder and Encoder are server-sent events to the letter; ParseRequest and the JSON
// forms of Request and Response are for whoever serves the contract.
//
// Agents and their callers are hostile: all that comes is bounded in size and depth. No
// error, report or log has a value in it that came from a request, an answer or a
// secret: fields, rules and status codes are named, and the caller's own address.
//
// It must not know runs, units, engines, or how a server is made.
package agentapi
