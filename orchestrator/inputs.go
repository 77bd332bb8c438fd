package orchestrator

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// NewSpool returns an empty spool. The caller removes it if no submission took it.
func (l *loop) NewSpool() (*spool.Spool, error) {
	return spool.New(filepath.Join(l.home.Dir, "spool"), l.room)
}

// placeInputs puts the files of a request into the input directory of a run. Spooled files
// are moved, others are copied.
func placeInputs(dir string, files []run.PlacedFile) error {
	for _, f := range files {
		if err := placeInput(f, filepath.Join(dir, filepath.FromSlash(f.Name))); err != nil {
			return run.StorageFault(err)
		}
	}
	return nil
}

func placeInput(f run.PlacedFile, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if f.Ours {
		return errors.Join(os.Rename(f.Source, target), os.Chmod(target, 0o644))
	}
	return copyFile(f.Source, target)
}

// copyFile copies a regular file of the user, inside the kernel where that is possible.
func copyFile(source, target string) error {
	in, _, err := safefs.OpenNamed(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	dir, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	_, err = safefs.Copy(dir, filepath.Base(target), in, 0o644)
	return err
}
