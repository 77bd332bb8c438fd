package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// withMaskedFiles returns the result with the names that its files may be stored and shown under,
// and gives them those names. If they can't be had, the result is the fault.
func (j *job) withMaskedFiles(ctx context.Context, result run.Result) run.Result {
	result, names := j.WithMaskedNames(result)
	if len(names) == 0 {
		return result
	}
	if err := errors.Join(j.keepTrueNames(names), renameFiles(cmp.Or(j.OutDir, j.OutputDir()), names)); err != nil {
		return run.Fault(ctx, run.StorageFault(err))
	}
	return result
}

// keepTrueNames writes the true names to the disk, for a process that takes the output once more.
func (j *job) keepTrueNames(names map[string]string) error {
	if !j.Durable {
		return nil
	}
	raw, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return safefs.Replace(trueNamesOf(j.Run), raw, safefs.ReplaceOptions{Mode: 0o600, Synced: true})
}

// restoreTrueNames gives the output of a process that died before the end was stored its true names
// again: it is held against the contract once more.
func (j *job) restoreTrueNames() error {
	raw, err := os.ReadFile(trueNamesOf(j.Run))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var names map[string]string
	if err == nil {
		err = json.Unmarshal(raw, &names)
	}
	if err != nil {
		return err
	}
	back := map[string]string{}
	for name, shown := range names {
		// it had come as far as that
		if _, err := os.Lstat(filepath.Join(j.OutputDir(), filepath.FromSlash(shown))); err == nil {
			back[shown] = name
		}
	}
	if err := renameFiles(j.OutputDir(), back); err != nil {
		return err
	}
	return safefs.IgnoreMissing(os.Remove(trueNamesOf(j.Run)))
}

func trueNamesOf(r *run.Run) string { return filepath.Join(r.Dir, layout.TrueNames) }

// renameFiles gives files below a directory other names, and removes directories that it empties.
func renameFiles(dir string, names map[string]string) error {
	if len(names) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // holds no data
	for _, name := range slices.Sorted(maps.Keys(names)) {
		to := names[name]
		if err := safefs.MkdirAll(root, path.Dir(to), 0o755); err != nil {
			return err
		}
		if err := root.Rename(name, to); err != nil {
			return err
		}
		for above := path.Dir(name); above != "." && root.Remove(above) == nil; above = path.Dir(above) {
		}
	}
	return nil
}
