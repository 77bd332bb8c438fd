package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/safefs"
)

const (
	lockName = "lock"
	// unborn marks a run directory that is still being made; newborns older than
	// unbornAge belong to a process that died over it.
	unborn    = ".new-"
	unbornAge = time.Minute
)

// dataDir is the directory under which runs live:
//
//	bin/       the installed init
//	runs/ID/   one run that goes on, with a lock that its process holds
//	kept/ID/   a run's directory that somebody wanted to keep
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
	sum := sha256.Sum256([]byte(abs))
	return &dataDir{path: abs, owner: hex.EncodeToString(sum[:6])}, nil
}

func (d *dataDir) bin() string { return filepath.Join(d.path, "bin") }

func (d *dataDir) runs() string { return filepath.Join(d.path, "runs") }

// runDir is a run's directory whose lock this process holds.
type runDir struct {
	path string
	lock *os.File
}

// open makes the directory of a new run. It appears under its name with the lock
// already held, so that nobody can take it for an orphan.
func (d *dataDir) open(id string) (*runDir, error) {
	nascent := filepath.Join(d.runs(), unborn+id)
	if err := os.Mkdir(nascent, 0o700); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "no directory can be made for the run in %q", d.runs()).
			WithHint("is the disk full, or the data directory somebody else's? --data DIR names another one")
	}
	lock, err := safefs.Lock(filepath.Join(nascent, lockName))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock run: %w", err), os.RemoveAll(nascent))
	}
	path := filepath.Join(d.runs(), id)
	if err := os.Rename(nascent, path); err != nil {
		return nil, errors.Join(fmt.Errorf("name run directory: %w", err), lock.Close(), os.RemoveAll(nascent))
	}
	return &runDir{path: path, lock: lock}, nil
}

// release gives the lock back; what is left of the directory is an orphan then.
func (r *runDir) release() error { return r.lock.Close() }

// remove deletes the directory, the lock last: as long as anything is left there,
// somebody can find out whose it is.
func (r *runDir) remove() error {
	entries, err := os.ReadDir(r.path)
	if err != nil {
		return fmt.Errorf("remove run directory: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == lockName {
			continue
		}
		if err := safefs.RemoveTree(filepath.Join(r.path, entry.Name())); err != nil {
			return fmt.Errorf("remove run directory: %w", err)
		}
	}
	if err := os.RemoveAll(r.path); err != nil {
		return fmt.Errorf("remove run directory: %w", err)
	}
	return nil
}

// isEmpty reports whether nothing was made there but the lock.
func (r *runDir) isEmpty() bool {
	entries, err := os.ReadDir(r.path)
	return err == nil && len(entries) <= 1
}

// keep moves the directory to where nobody sweeps and returns its new place.
func (d *dataDir) keep(r *runDir) (string, error) {
	kept := filepath.Join(d.path, "kept")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return "", fmt.Errorf("keep run directory: %w", err)
	}
	target := filepath.Join(kept, filepath.Base(r.path))
	if err := os.Rename(r.path, target); err != nil {
		return "", fmt.Errorf("keep run directory: %w", err)
	}
	return target, os.Remove(filepath.Join(target, lockName))
}

// lockPatience is for who starts again what was just killed.
const lockPatience = 3 * time.Second

// orphans returns the runs whose process is dead, each locked by us now.
func (d *dataDir) orphans() ([]orphan, error) {
	entries, err := os.ReadDir(d.runs())
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var found []orphan
	for _, entry := range entries {
		if o, ok := d.orphan(entry); ok {
			found = append(found, o)
		}
	}
	return found, nil
}

// orphan is a run's directory without a living process.
type orphan struct {
	id  string
	dir *runDir
}

func (d *dataDir) orphan(entry os.DirEntry) (orphan, bool) {
	id, nascent := strings.CutPrefix(entry.Name(), unborn)
	if !entry.IsDir() || nascent && young(entry) {
		return orphan{}, false
	}
	path := filepath.Join(d.runs(), entry.Name())
	lock, err := safefs.LockExisting(filepath.Join(path, lockName))
	if errors.Is(err, os.ErrNotExist) {
		_ = os.Remove(path) // the last step of a removal that was cut off; refused unless empty
	}
	if err != nil { // held, or gone by now
		return orphan{}, false
	}
	return orphan{id: id, dir: &runDir{path: path, lock: lock}}, true
}

func young(entry os.DirEntry) bool {
	info, err := entry.Info()
	return err != nil || time.Since(info.ModTime()) < unbornAge
}
