package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// keptOfHome are the files of a home that a restored one goes on with: who may ask it, whose its
// containers are, and when it was backed up.
var keptOfHome = []string{layout.Token, layout.Tokens, layout.Swarm, layout.Owner, layout.BackedUp}

// Restored says what was restored, and where the home of before is; "" is nowhere.
type Restored struct {
	Report
	Aside string
}

// Restore makes the home that a backup holds. It becomes the home when it is whole, checked and
// on the disk. A home with anything of a server in it is a Conflict, unless force moves it
// aside; its token and its owner are taken over. The error is a fault: Conflict while a server
// has the home, Input for a file that isn't a whole backup, Unsupported for one of another version.
func Restore(ctx context.Context, home, file string, force bool) (done Restored, err error) {
	if err := os.MkdirAll(filepath.Dir(home), 0o700); err != nil {
		return done, run.StorageFault(err)
	}
	lock, err := lockForRestore(home, force)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, unlock(lock)) }()
	w, err := openWorkplace(filepath.Join(filepath.Dir(home), "restore"))
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	fresh := filepath.Join(w.dir, "home")
	if done.Report, err = unpack(ctx, file, w.dir, fresh); err != nil {
		return done, err
	}
	if done.Runs, err = checkRestored(ctx, filepath.Join(fresh, layout.Database)); err != nil {
		return done, err
	}
	if err := errors.Join(takeOver(home, fresh), safefs.SyncTree(fresh, w.dir)); err != nil {
		return done, run.StorageFault(err)
	}
	done.Aside, err = swapHomes(home, fresh)
	return done, err
}

// lockForRestore locks a home that exists. It returns nil for one that doesn't.
func lockForRestore(home string, force bool) (*safefs.LockFile, error) {
	if _, err := os.Stat(home); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	lock, err := safefs.Lock(filepath.Join(home, layout.Lock))
	if errors.Is(err, safefs.ErrLocked) {
		return nil, fault.Wrap(fault.Conflict, err, "a server runs over %q", home).
			WithHint("stop it, or restore to another data directory with --data DIR")
	}
	if err != nil {
		return nil, run.StorageFault(err)
	}
	if _, err := os.Stat(filepath.Join(home, layout.Database)); err == nil && !force {
		return nil, errors.Join(fault.New(fault.Conflict, "there is a server's data in %q already", home).
			WithHint("--force moves it aside, and says where to"), lock.Close())
	}
	return lock, nil
}

func unlock(lock *safefs.LockFile) error {
	if lock == nil {
		return nil
	}
	return lock.Close()
}

// checkRestored looks a store through, counts its runs, and signs everybody out who had signed in at its page: they may
// have been signed out since.
func checkRestored(ctx context.Context, path string) (runs int64, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, notBackup(err)
	}
	s, err := store.Open(path, store.Options{NotEmpty: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Health(ctx); err != nil {
		return 0, fault.Wrap(fault.Input, err, "the database in the backup is damaged").WithHint("use another backup")
	}
	totals, err := s.Runs.Totals(ctx)
	return totals.Runs, errors.Join(err, s.Signins.Clear(ctx))
}

// takeOver copies what a restored home keeps of the one before, the secrets of webhooks too: a backup has none.
func takeOver(home, fresh string) error {
	secrets, err := os.ReadDir(filepath.Join(home, layout.Webhooks))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(secrets) > 0 {
		if err := os.Mkdir(filepath.Join(fresh, layout.Webhooks), 0o700); err != nil {
			return err
		}
	}
	kept := slices.Clone(keptOfHome)
	for _, of := range secrets {
		kept = append(kept, filepath.Join(layout.Webhooks, of.Name()))
	}
	for _, name := range kept {
		raw, err := os.ReadFile(filepath.Join(home, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = safefs.Replace(filepath.Join(fresh, name), raw, safefs.ReplaceOptions{Mode: 0o600})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// swapHomes moves a home aside, if there is one, and another one in its place. There is a whole
// home at every moment, also after a loss of power, unless the file system can't exchange names.
func swapHomes(home, fresh string) (aside string, err error) {
	if _, err := os.Stat(home); err == nil {
		aside = home + ".before-" + time.Now().UTC().Format("20060102T150405.000")
		err := exchange(home, fresh, aside)
		if err == nil || !errors.Is(err, errors.ErrUnsupported) {
			return aside, run.StorageFault(err)
		}
		if err := os.Rename(home, aside); err != nil {
			return "", run.StorageFault(err)
		}
	}
	err = os.Rename(fresh, home)
	if err == nil {
		err = safefs.Sync(filepath.Dir(home))
	} else if aside != "" {
		err = errors.Join(err, os.Rename(aside, home))
	}
	return aside, run.StorageFault(err)
}

// exchange gives the fresh home the name that the old one is to have, and then each the other's.
// In between the old one is in its place, and the fresh one in no place from which leftovers are
// removed.
func exchange(home, fresh, aside string) error {
	err := os.Rename(fresh, aside)
	if err == nil {
		err = safefs.Sync(filepath.Dir(home))
	}
	if err != nil {
		return err
	}
	if err := safefs.Exchange(aside, home); err != nil {
		return errors.Join(err, os.Rename(aside, fresh))
	}
	return safefs.Sync(filepath.Dir(home))
}
