// Package au defines an Agentic Unit: a program that takes bytes on stdin, prints
// one JSON document on stdout and its errors on stderr, and describes itself when
// started with --describe.
//
// The main path, in call order:
//
//	ParseCard    the output of --describe, strictly, or all its mistakes together
//	Card.Accepts whether the unit takes input of this type (Sniff)
//	Card.Args    a user's call, checked, as arguments and environment
//	ExitMeaning  the meaning of the exit code
//	ParseOutput  stdout, exactly one JSON document, or why it isn't one
//
// A unit's output is hostile: sizes, depth and counts are bounded, and no message shows a
// value from it.
//
// It starts nothing. It knows nothing of engines, sandboxes, HTTP or runs: its
// callers run the units. The specification's checklist is capsule/au/check.
//
// Its Go API may change with every release: see docs/stability.md.
package au
