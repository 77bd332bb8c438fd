package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// Add keeps a run whose directory is runDir, from which it moves the input files, the log and a flow's state.
// The output files are copied: they are the user's. The run gets its name when all of it is
// there.
func (h *History) Add(past Past, runDir string) error {
	if h.most <= 0 {
		return h.prune()
	}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return err
	}
	temp := filepath.Join(h.dir, safefs.TempName())
	if err := os.Mkdir(temp, 0o700); err != nil {
		return err
	}
	err := h.fill(temp, past, runDir)
	if err == nil {
		err = os.Rename(temp, filepath.Join(h.dir, past.Record.ID))
	}
	if err != nil {
		return errors.Join(err, safefs.RemoveTree(temp))
	}
	return h.prune()
}

func (h *History) fill(temp string, past Past, runDir string) error {
	past.NoFiles = safefs.TreeBytes(filepath.Join(runDir, "input"))+sizeOf(past.Record.Files) > maxFileBytes
	if err := errors.Join(h.fillProject(temp, &past, runDir), h.fillWalk(temp, &past, runDir)); err != nil {
		return err
	}
	if !past.NoFiles {
		if err := moveIfThere(filepath.Join(runDir, "input"), filepath.Join(temp, "input")); err != nil {
			return err
		}
		kept, err := copyOutputs(past.Record.Files, filepath.Join(temp, "output"),
			filepath.Join(h.dir, past.Record.ID, "output"))
		if err != nil {
			return err
		}
		past.Record.Files = kept
	}
	for _, name := range []string{layout.Log, layout.Transcript} {
		if err := moveIfThere(filepath.Join(runDir, name), filepath.Join(temp, name)); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(past)
	if err != nil {
		return fmt.Errorf("encode run: %w", err)
	}
	return os.WriteFile(filepath.Join(temp, pastName), raw, 0o600)
}

// fillProject keeps the changes of a run's project and the project itself, each unless it is
// too large.
func (h *History) fillProject(temp string, past *Past, runDir string) error {
	if safefs.TreeBytes(filepath.Join(runDir, layout.Changes)) <= maxFileBytes {
		if err := moveIfThere(filepath.Join(runDir, layout.Changes), filepath.Join(temp, layout.Changes)); err != nil {
			return err
		}
	}
	if past.NoProject = safefs.TreeBytes(filepath.Join(runDir, layout.Base)) > maxFileBytes; past.NoProject {
		return nil
	}
	return errors.Join(
		moveIfThere(filepath.Join(runDir, layout.Base), filepath.Join(temp, layout.Base)),
		moveIfThere(filepath.Join(runDir, layout.Manifest), filepath.Join(temp, layout.Manifest)),
	)
}

func sizeOf(files []api.File) (sum int64) {
	for _, f := range files {
		sum += f.SizeBytes
	}
	return sum
}

func moveIfThere(from, to string) error { return safefs.IgnoreMissing(os.Rename(from, to)) }

// copyOutputs copies delivered files to a directory, and returns them as they lie in the
// directory that it will be.
func copyOutputs(files []api.File, dir, future string) ([]api.File, error) {
	kept := []api.File{}
	if len(files) == 0 {
		return kept, nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // holds no data
	for _, f := range files {
		if err := copyOutput(root, f); err != nil {
			return nil, err
		}
		f.Path = filepath.Join(future, filepath.FromSlash(f.Name))
		kept = append(kept, f)
	}
	return kept, nil
}

func copyOutput(root *os.Root, f api.File) error {
	if err := safefs.MkdirAll(root, path.Dir(f.Name), 0o700); err != nil {
		return err
	}
	in, _, err := safefs.OpenNamed(f.Path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	_, err = safefs.Copy(root, f.Name, in, 0o600)
	return err
}
