// Package check holds an agent elsewhere against the A2A protocol.
//
// Agent makes all calls that the rules need (gather), then judges what came (the table rules). The bounds and the
// checks of answers are those that the client goes by.
//
// No report holds a value from a card, an answer or a secret: it names members, rules, states and status codes, and the
// caller's own address.
//
// It must not know runs, units, engines, or a terminal.
package check
