package handoff

import (
	"context"
	"strings"

	"github.com/agent-on-demand/aod/capsule/contract"
)

// PlacedFile is a file of a callee's as its caller finds it.
type PlacedFile struct {
	Name string `json:"name"` // relative to the callee's /io/output
	// Path is absolute: in the caller's sandbox, or on this host for a caller without an
	// incoming directory.
	Path      string `json:"path"`
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"` // hex
	Field     string `json:"field,omitempty"`
}

// Deliver gives the caller the files of a call that has ended: it puts them into the
// caller's incoming directory, each of them whole. Asked again it answers the same. For a
// caller without that directory the files stay where they lie. The error is an Unavailable
// or Internal fault.
func (b *Broker) Deliver(ctx context.Context, id string, files []Output) ([]PlacedFile, error) {
	if b.caller.Incoming == "" {
		return whereTheyLie(files), nil
	}
	placed, err := b.incoming.deliver(id, files)
	if err != nil || b.caller.Transfer == nil {
		return placed, err
	}
	names := make([]string, 0, len(placed))
	for _, f := range placed {
		names = append(names, strings.TrimPrefix(f.Path, string(contract.StageIncoming)+"/"))
	}
	return placed, deliveryFault(b.caller.Transfer.Send(ctx, names))
}

// whereTheyLie describes files that were not placed.
func whereTheyLie(files []Output) []PlacedFile {
	lying := make([]PlacedFile, 0, len(files))
	for _, f := range files {
		lying = append(lying, PlacedFile(f))
	}
	return lying
}
