// Package pipe runs Agentic Units one on the result of another.
//
// Parse reads what a user wrote to Tasks. Run prepares and runs them: a line of units at the
// same time, joined by pipes, where the Runner can do that; else in turn, over files.
// Decisive picks the record that tells how a pipeline ended.
//
// It knows nothing of engines, sandboxes or a terminal: a Runner runs the units.
package pipe
