// Package pipe runs Agentic Units in sequence, each on the result of another.
//
// Parse turns a user's text into Tasks. Run prepares and runs them: a line of units at the
// same time, joined by pipes, if the Runner can do that; else in turn, over files.
// Decisive picks the record that decides a pipeline's outcome, Failed those that failed.
//
// It knows nothing of engines, sandboxes or a terminal: a Runner runs the units.
//
// Its Go API may change with every release: see docs/stability.md.
package pipe
