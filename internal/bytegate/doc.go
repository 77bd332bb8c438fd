// Package bytegate bounds what a server holds in memory for all who ask it: bodies that are read
// whole, what followers of runs share, answers that are on their way. Each client and each run has a
// share of one gate, so that nobody needs another's.
//
//	New, Gate.Take (gate.go)         the gate, and its share for each
//	Account, Hold (account.go)       for whom a request's bytes count
//
// It must not know requests, nor what is held. Bodies come to it by httpwire.Intake.
package bytegate
