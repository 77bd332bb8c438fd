// Package outputs looks after the files that a run has delivered: their names, where those are masked,
// and that they are on the disk before anybody is told of them.
//
// It must not know how a run is led, or the store.
//
// Its Go API may change with every release: see docs/stability.md.
package outputs

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

// Mask returns the result with the names that its files may be stored and shown under,
// and gives them those names. If they can't be had, the result is the fault.
func Mask(ctx context.Context, r *run.Run, result run.Result) run.Result {
	result, names := r.WithMaskedNames(result)
	if len(names) == 0 {
		return result
	}
	if err := errors.Join(keepTrueNames(r, names), renameFiles(cmp.Or(r.OutDir, r.OutputDir()), names)); err != nil {
		return run.Fault(ctx, run.StorageFault(err))
	}
	return result
}

// keepTrueNames writes the true names to the disk, for a process that takes the output once more.
func keepTrueNames(r *run.Run, names map[string]string) error {
	if !r.Durable {
		return nil
	}
	raw, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return safefs.Replace(trueNamesOf(r), raw, safefs.ReplaceOptions{Mode: 0o600, Synced: true})
}

// RestoreTrueNames gives the output of a process that died before the end was stored its true names
// again: it is held against the contract once more.
func RestoreTrueNames(r *run.Run) error {
	raw, err := os.ReadFile(trueNamesOf(r))
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
		if _, err := os.Lstat(filepath.Join(r.OutputDir(), filepath.FromSlash(shown))); err == nil {
			back[shown] = name
		}
	}
	if err := renameFiles(r.OutputDir(), back); err != nil {
		return err
	}
	return DropTrueNames(r)
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

// DropTrueNames removes the true names when nobody will read them any more.
func DropTrueNames(r *run.Run) error { return safefs.IgnoreMissing(os.Remove(trueNamesOf(r))) }

// Sync writes the output files to the disk before the run's end is stored: they are in the directory where runs
// have theirs. If that fails, the result is the fault.
func Sync(ctx context.Context, r *run.Run, runs string, result run.Result) run.Result {
	if !r.Durable {
		return result
	}
	var err error
	if len(result.Files) > 0 {
		err = safefs.SyncTree(r.OutputDir(), runs)
	}
	if err == nil && r.Record.Changes != nil {
		err = safefs.SyncTree(r.ChangesDir(), runs)
	}
	if err != nil {
		return run.Fault(ctx, run.StorageFault(err))
	}
	return result
}
