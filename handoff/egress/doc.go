// Package egress is the network by name: it lets a program in a sandbox without a network reach the hosts that its unit
// lists, and no others. The lists are those of capsule/outside. A Door is shared by all runs; each run has a Session,
// an http.Handler for CONNECT and for requests of http:// addresses.
//
// The way of a request: Session.ServeHTTP, the list first; only then Door.dial resolves the name, outside of the
// sandbox, and connects to public addresses alone, or to what an outside.Exception allows; tunnel.open reads the TLS
// client's first message, which must name the same host; then tunnel.splice carries bytes both ways until one side
// ends, nothing moves, or the run ends.
//
// Session.admit (session.go) holds a request against the list, tunnel.pass (plain.go) is for addresses without TLS, and
// a Tally (tally.go) counts.
//
// It must not know units, runs or the store.
//
// Its Go API may change with every release: see docs/stability.md.
package egress
