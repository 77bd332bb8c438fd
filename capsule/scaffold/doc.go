// Package scaffold writes new capsules from templates that are embedded in it. Each runs as
// it is, and has test cases.
//
// It knows nothing of how a capsule is read or run.
//
// Its Go API may change with every release: see docs/stability.md.
package scaffold
