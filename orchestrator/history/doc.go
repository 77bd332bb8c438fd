// Package history keeps the last runs of commands in a data directory, with their inputs, logs and
// results, so that a user can look at them and run them again.
//
//	History.Add   keeps a run that has ended, and removes the oldest
//	History.List  has what is kept, newest first
//	History.Get   reads one run; Log, Inputs and Project read what lies beside it
//
// Any number of processes may use a history at once. It must not know how a run is led, nor the
// store of a server.
//
// Its Go API may change with every release: see docs/stability.md.
package history
