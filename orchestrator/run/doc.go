// Package run is the seam between the loop that leads runs and the kinds of unit that carry
// them out. A Run is one execution of a unit with its record and its states. A Kind makes
// the attempts of runs: the orchestrator owns states, queue, retries and the tree of calls,
// a kind owns one attempt.
//
//	Request.Prepare   places the input files and holds the input against the contract
//	Kind.Check        refuses what the kind knows better than the contract
//	Kind.Execution    what makes the attempts of one run
//	Execution.Attempt a new attempt; Resume one of a dead process
//	Execution.Settle  takes what is still to come into the record
//	Execution.Remove  removes what the run has outside of its directory
//
// It must not know engines' clients, the store, HTTP or a terminal.
//
// Its Go API may change with every release: see docs/stability.md.
package run
