package handoff

import "context"

// Porter carries files between a caller's directories and Caller's Outgoing and Incoming,
// where those are not what the caller sees: its engine runs elsewhere.
type Porter interface {
	// Fetch brings files of outgoing, by their clean names, into a directory of this host.
	// What is missing, no regular file or larger than maxBytes is the same there. The
	// caller calls done when it has opened them.
	Fetch(ctx context.Context, names []string, maxBytes int64) (dir string, done func(), err error)
	// Send makes files that lie in Incoming appear with the caller.
	Send(ctx context.Context, names []string) error
}
