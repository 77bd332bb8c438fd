// Package certs is the certificate of a server that speaks TLS, and what its clients know it by.
//
// Self (self.go) makes the certificate of a server that has no other. A Keeper (keeper.go) reads a Pair of files
// (pair.go), gives each new connection the newest good one, and tells when it changes or can't be read. A Pin (pin.go)
// names a server's key in one line; a Trust (trust.go) is what a client believes: roots of its own, or a pin.
//
// It must not know who serves, nor where what it tells is written.
//
// Its Go API may change with every release: see docs/stability.md.
package certs
