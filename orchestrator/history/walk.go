package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

const walkName = "walk.json"

// Walk is what became of a flow: the graph that ran, as flow.Parse reads it, and its steps in the order in which they
// were kept.
type Walk struct {
	Graph json.RawMessage `json:"graph"`
	Steps []flow.Step     `json:"steps"`
}

// Walk reads that of a run. The error is a Conflict fault where there is none.
func (h *History) Walk(id string) (*Walk, error) {
	past, err := h.Get(id)
	if err != nil {
		return nil, err
	}
	if past.NoWalk {
		return nil, fault.New(fault.Conflict, "the steps of %s were too large to be kept", id).
			WithHint("run it again without --from, or on a server")
	}
	f, _, err := safefs.OpenNamed(filepath.Join(h.Dir(id), walkName))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fault.New(fault.Conflict, "%s isn't a run of a flow", id).
			WithHint("only flows have a graph, a state and steps")
	case err != nil:
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	walk := &Walk{}
	if err := json.NewDecoder(io.LimitReader(f, maxFileBytes)).Decode(walk); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the steps of the kept run %s can't be read", id).
			WithHint("remove %s", h.Dir(id))
	}
	return walk, nil
}

// StateDir has the files in the state of a flow's run, each under its digest.
func (h *History) StateDir(id string) string { return filepath.Join(h.Dir(id), layout.State) }

// fillWalk keeps the steps of a flow and the files in its state: all, or nothing where they are too large.
func (h *History) fillWalk(temp string, past *Past, runDir string) error {
	if past.Walk == nil {
		return nil
	}
	raw, err := json.Marshal(past.Walk)
	if err != nil {
		return fmt.Errorf("encode steps: %w", err)
	}
	state := filepath.Join(runDir, layout.State)
	if past.NoWalk = int64(len(raw))+safefs.TreeBytes(state) > maxFileBytes; past.NoWalk {
		return nil
	}
	if err := moveIfThere(state, filepath.Join(temp, layout.State)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(temp, walkName), raw, 0o600)
}

// SaveState writes files of a flow's state to a directory, and returns them as they lie there. A
// file that has its name already is replaced.
func (h *History) SaveState(id string, files []api.File, dir string) (saved []api.File, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fault.Wrap(fault.Input, err, "the directory %q can't be used", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the directory %q can't be used", dir)
	}
	defer func() { _ = root.Close() }() // holds no data
	for _, f := range files {
		f.Path = filepath.Join(h.StateDir(id), f.SHA256)
		if err = api.CheckFileName(f.Name); err == nil {
			err = errors.Join(safefs.IgnoreMissing(root.Remove(f.Name)), copyOutput(root, f))
		}
		if err != nil {
			return saved, fault.Wrap(fault.Unavailable, err, "the file %q can't be written", f.Name).
				WithHint("is the disk full, or something in the way? another directory may do")
		}
		f.Path = filepath.Join(dir, filepath.FromSlash(f.Name))
		saved = append(saved, f)
	}
	return saved, nil
}
