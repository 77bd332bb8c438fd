package flow

import (
	"context"
	"path/filepath"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// input returns the input of the flow: each file reference of its contract is a flow.File. It
// is kept where it has files, so that the next process needn't read them, and others know them.
func (h *host) input() (map[string]any, error) {
	if kept, err := run.FlowInput(h.StateDir()); kept != nil || err != nil {
		return kept, err
	}
	payload := h.Input.Payload
	found := map[string]flow.File{}
	var refs []contract.FileRef
	for _, ref := range h.Unit.Contract.Input.FileRefs(payload) {
		if ref.Err != nil {
			continue // refused when the run was accepted
		}
		file, known := found[ref.Name]
		if !known {
			var err error
			if file, err = h.inputFile(ref.Name); err != nil {
				return nil, run.StorageFault(err)
			}
		}
		refs, found[ref.Name] = append(refs, ref), file
	}
	if err := h.files.sync(len(found)); err != nil {
		return nil, err
	}
	all, err := flow.Values(payload.Replaced(refs, func(ref contract.FileRef) any { return found[ref.Name] }))
	if err != nil {
		return nil, err
	}
	object, _ := all.(map[string]any)
	if h.Durable && len(found) > 0 {
		err = h.files.saveInput(object)
	}
	return object, err
}

// inputFile describes an input file, and keeps its bytes.
func (h *host) inputFile(name string) (flow.File, error) {
	path := filepath.Join(h.InputDir(), filepath.FromSlash(name))
	f, _, err := safefs.OpenNamed(path)
	if err != nil {
		return flow.File{}, err
	}
	defer func() { _ = f.Close() }() // read only
	size, digest, err := safefs.Digest(f)
	if err != nil {
		return flow.File{}, err
	}
	file := flow.File{Name: name, SizeBytes: size, SHA256: digest}
	return file, h.files.add(context.Background(), path, file)
}
