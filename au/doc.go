// Package au says what an Agentic Unit is: a program that takes bytes on stdin, prints
// one JSON document on stdout and its errors on stderr, and describes itself when it is
// started with --describe.
//
// The main path, in call order:
//
//	ParseCard    what --describe printed, strictly, or all its mistakes at once
//	Card.Accepts whether the bytes that come (Sniff) are of a kind that it takes
//	Card.Args    what a user gave, checked, to the arguments and environment to start with
//	ExitMeaning  what the exit code says
//	ParseOutput  stdout, exactly one JSON document, or in which way it isn't
//
// All that a unit prints is hostile: sizes, depth and counts are bounded, and no message
// shows a value from it.
//
// It starts nothing. It knows nothing of engines, sandboxes, HTTP or runs: whoever runs
// a unit brings the bytes. The specification's checklist is au/check.
package au
