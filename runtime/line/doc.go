// Package line is the way of the capsule API to a sandbox that can't have a socket of this
// host, because its engine runs elsewhere.
//
// At the near end, Line is the listener of the orchestrator. At the far end, within the
// sandbox, the init's Answer listens on a socket and passes the connections on through its
// stdin and stdout, which the engine carries like those of any program. So a sandbox without
// a network stays without one, whatever protects the way to the engine protects the API as
// well, and who is at the other end is known without a secret.
//
// The far end also tells how much room the run takes on the engine's disk.
//
// Whatever comes from the far end is hostile: it runs as the same user as the program.
package line
