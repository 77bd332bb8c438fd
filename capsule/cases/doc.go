// Package cases holds what came of a run against what a test case of its capsule expects.
//
// Compare returns a line for each difference, as a person wants to read it. The cases
// themselves are read by package capsule.
//
// It starts nothing: a run's record is what it is given.
//
// Its Go API may change with every release: see docs/stability.md.
package cases
