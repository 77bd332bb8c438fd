// Package orchestrator holds the use cases of AOD: submit a run, wait for it, cancel
// it, clean up what a dead process left behind. It owns the goroutines of the runs.
//
// The life of a run, in call order:
//
//	Submit        checks the request; nothing is started for a wrong one
//	execute       leads through the states
//	ensureImage   the capsule's image, and the base below it
//	open          the run's directory, with its lock
//	runtime.Start, Wait, Remove
//	judge         what the end means: an Outcome
//	takeResult    reads, validates and delivers what the capsule left
//
// It must not know Docker, HTTP or a terminal.
package orchestrator
