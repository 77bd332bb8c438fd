// Package run is the seam between the loop that leads runs and the kinds of unit that carry them out. A Run is one
// execution of a unit with its record and its states. A Kind makes the attempts of runs: the orchestrator owns states,
// queue, retries and the tree of calls, a kind owns one attempt.
//
//	Request.Prepare   places the input files and holds the input against the contract
//	Kind.Check        refuses what the kind knows better than the contract
//	Kind.Execution    what makes the attempts of one run
//	Execution.Attempt a new attempt; Resume one of a dead process
//	Execution.Settle  takes what is still to come into the record
//	Execution.Remove  removes what the run has outside of its directory
//
// Beyond Kind, a kind implements what it needs: Opener (a home), Warmer (ready ahead of runs), Sweeper (leaves
// something outside of its home), ImagePruner (images that nobody needs), Acceptor (a word on uploads), Describer (an
// image, stdin, a model card), Talker (sessions in place of runs), Conductor (runs that only lead others). Why:
// docs/adr/0007-kinds-are-a-seam.md.
//
// Run.Masked (masked.go) masks texts where they enter the record or leave as events, Run.WithMaskedNames (names.go) the
// names of output files; Run.Hide (masked.go) adds the values of secrets. Whether a run is masked is its unit's policy.
//
// It must not know engines' clients, the store, HTTP or a terminal.
//
// Its Go API may change with every release: see docs/stability.md.
package run
