// Package testkit has what tests of several packages need: patience, also with goroutines, a log to
// read in, an address where nobody listens, another user, deep directories.
package testkit
