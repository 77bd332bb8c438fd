// Package testkit has what tests of several packages need: patience, a log to read in, another
// user, deep directories.
//
// Its Go API may change with every release: see docs/stability.md.
package testkit
