package handoff

import (
	"context"
	"strings"

	"github.com/agent-on-demand/aod/capsule/contract"
)

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

// outgoing returns the directory in which the files of a call can be opened.
func (h *Handler) outgoing(ctx context.Context, c cargo) (dir string, done func(), err error) {
	if h.caller.Porter == nil {
		return h.caller.Outgoing, func() {}, nil
	}
	names := make([]string, 0, len(c.refs))
	for _, ref := range c.refs {
		names = append(names, ref.source)
	}
	return h.caller.Porter.Fetch(ctx, names, h.limits.FileBytes)
}

// place gives the caller the files of a call that has ended.
func (h *Handler) place(ctx context.Context, id string, files []Output) ([]placedFile, error) {
	placed, err := h.incoming.place(id, files)
	if err != nil || h.caller.Porter == nil {
		return placed, err
	}
	names := make([]string, 0, len(placed))
	for _, f := range placed {
		names = append(names, strings.TrimPrefix(f.Path, string(contract.StageIncoming)+"/"))
	}
	return placed, unplaced(h.caller.Porter.Send(ctx, names))
}
