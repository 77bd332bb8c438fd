package handoff

import "context"

// FileTransfer copies files between the directories that a caller sees, where its engine
// runs, and Caller's Outgoing and Incoming on this host.
type FileTransfer interface {
	// Fetch copies files of outgoing, by their clean names, into a directory of this host.
	// A file that is missing, is not regular, or has more than maxBytes is the same in
	// there. done removes the directory; whoever calls Fetch calls it, without an error.
	Fetch(ctx context.Context, names []string, maxBytes int64) (dir string, done func(), err error)
	// Send copies files of Incoming, by their names in it, to the caller.
	Send(ctx context.Context, names []string) error
}
