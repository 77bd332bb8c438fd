// Package line runs in the sandboxes of an engine that doesn't see the orchestrator's files,
// beside PID 1 and the program, and as the same user. It is the far end of the tunnel
// (runtime/tunnel): it listens on the capsule API's socket and tells how much disk the run uses.
//
// The program cmd/aod-line is nothing else; aod is it as well where no aod-line is embedded (see
// runtime/initbin). The package knows nothing of runs.
//
// Its Go API may change with every release: see docs/stability.md.
package line
