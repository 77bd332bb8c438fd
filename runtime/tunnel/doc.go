// Package tunnel carries the connections of the capsule API out of a sandbox whose engine
// runs elsewhere. Such a sandbox can't have a socket of this host.
//
// At the near end, the orchestrator accepts connections from a Listener. At the far end, in
// the sandbox, Answer (run by package line) listens on a unix socket. It multiplexes the
// connections over its stdin and stdout, which the engine carries like those of any program.
// A sandbox without a network stays without one. What protects the connection to the engine
// protects the API as well. The engine's connection says which sandbox speaks: no secret is
// needed.
//
// The far end also tells how much of the engine's disk the run uses.
//
// Everything that comes from the far end is hostile: it runs as the same user as the
// program. The package knows nothing of runs, and of engines only a dial function.
//
// Its Go API may change with every release: see docs/stability.md.
package tunnel
