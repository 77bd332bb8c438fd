package orchestrator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

const (
	// tempAge is the age from which an unfinished directory counts as that of a dead
	// process.
	tempAge = time.Minute
)

// dataDir is the data directory that Locals share.
type dataDir struct {
	path  string
	owner string // tells this directory's containers from those of another
}

func openDataDir(path string) (*dataDir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	for _, dir := range []string{abs, filepath.Join(abs, "bin"), filepath.Join(abs, "runs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the data directory %q can't be made", abs).
				WithHint("name another one with --data DIR or AOD_DATA")
		}
	}
	return &dataDir{path: abs, owner: ownerOfPath(abs)}, nil
}

func (d *dataDir) bin() string { return filepath.Join(d.path, "bin") }

func (d *dataDir) runs() string { return filepath.Join(d.path, "runs") }

// lockedDir is a directory whose lock this process holds.
type lockedDir struct {
	path string
	lock *safefs.LockFile
}

// make makes a directory for runs. The lock is held before the directory gets its name, so
// that no other process takes it for an orphan.
func (d *dataDir) make(id string) (*lockedDir, error) {
	temp := filepath.Join(d.runs(), safefs.TempPrefix+id)
	if err := os.Mkdir(temp, 0o700); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "no directory can be made for the run in %q", d.runs()).
			WithHint("is the disk full, or the data directory somebody else's? --data DIR names another one")
	}
	lock, err := safefs.Lock(filepath.Join(temp, layout.Lock))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock run: %w", err), os.RemoveAll(temp))
	}
	path := filepath.Join(d.runs(), id)
	if err := os.Rename(temp, path); err != nil {
		return nil, errors.Join(fmt.Errorf("name run directory: %w", err), lock.Close(), os.RemoveAll(temp))
	}
	return &lockedDir{path: path, lock: lock}, nil
}

// release gives the lock back. A directory that still exists is an orphan then.
func (d *lockedDir) release() error { return d.lock.Close() }

// remove deletes the directory, and the lock file last: as long as anything is left, another
// process can see that nobody holds the lock.
func (d *lockedDir) remove() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("remove run directory: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == layout.Lock {
			continue
		}
		if err := safefs.RemoveTree(filepath.Join(d.path, entry.Name())); err != nil {
			return fmt.Errorf("remove run directory: %w", err)
		}
	}
	if err := os.RemoveAll(d.path); err != nil {
		return fmt.Errorf("remove run directory: %w", err)
	}
	return nil
}

// orphans returns the directories whose process is dead, each locked by us now.
func (d *dataDir) orphans() ([]*lockedDir, error) {
	entries, err := os.ReadDir(d.runs())
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var found []*lockedDir
	for _, entry := range entries {
		if orphan := d.orphan(entry); orphan != nil {
			found = append(found, orphan)
		}
	}
	return found, nil
}

// orphan returns a directory without a living process, or nil.
func (d *dataDir) orphan(entry os.DirEntry) *lockedDir {
	if !entry.IsDir() || strings.HasPrefix(entry.Name(), safefs.TempPrefix) && isNew(entry) {
		return nil
	}
	path := filepath.Join(d.runs(), entry.Name())
	lock, err := safefs.LockExisting(filepath.Join(path, layout.Lock))
	if errors.Is(err, os.ErrNotExist) {
		_ = os.Remove(path) // the last step of a removal that was cut off; refused unless empty
	}
	if err != nil { // held, or gone by now
		return nil
	}
	return &lockedDir{path: path, lock: lock}
}

func isNew(entry os.DirEntry) bool {
	info, err := entry.Info()
	return err != nil || time.Since(info.ModTime()) < tempAge
}
