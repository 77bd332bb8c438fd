// Package secrets keeps what only an operator and the other side of a call may know: keys of
// providers and of agents elsewhere, each in a file of its own.
//
// Files.Read reads one when it is needed, and refuses a file that others can read; Files.Set
// writes one that nobody else can. A Finder finds one in what others send. A Secret shows itself nowhere: printed,
// logged or written as JSON it is a placeholder.
//
// It must not know what a secret is for.
package secrets
