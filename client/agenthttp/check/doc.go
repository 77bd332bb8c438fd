// Package check holds an agent against the agent HTTP contract.
//
// Agent makes all calls that the rules need (gather), then judges what came (the table
// checks). The rules for answers are those that the client goes by.
//
// No report holds a value from a request, an answer or a secret: it names fields, rules and
// status codes, and the caller's own address.
//
// It must not know runs, units, engines, or a terminal.
//
// Its Go API may change with every release: see docs/stability.md.
package check
