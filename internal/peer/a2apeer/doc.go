// Package a2apeer asks agents of the A2A protocol elsewhere, of its versions 1.0 and 0.3 by JSON-RPC and HTTP+JSON.
//
//	New                          checks the address
//	Client.Card                  fetches the agent's card, and which of its interfaces can be used
//	Client.At                    the agent at one of them
//	Agent.Send, Agent.Stream     send a message
//	Agent.Get, Agent.Subscribe   how a task stands, once or as it changes
//	Agent.Cancel                 asks it to end one
//	Client.File                  fetches a file that a task names
//
// The wire and its types are those of the protocol's own SDK, which stays in this package. What the agent sends is
// hostile: guard bounds the bytes, the values and the time of each answer before the SDK reads it, and Task.fold checks
// what the SDK made of it. Package peer sends the token to the origin of the agent's address alone, whatever a card or
// an answer names.
//
// No error or log holds what an agent says, but for Refusal.Words and the texts of a Task: they are for the record.
//
// It must not know runs, units, engines, or how a server of the protocol is made.
package a2apeer
