package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// An apply works in a directory of its own in the directory that it changes, where renaming is
// all that is left to do.
//
//	.aod-apply/lock     held by the process that applies
//	.aod-apply/N        the new content of the change with the number N, until it is renamed
//	.aod-apply/journal  which changes they are: all contents are there, and files may be renamed
const (
	stageName   = ".aod-apply"
	lockName    = "lock"
	journalName = "journal"
)

// journal says what an apply is about to do.
type journal struct {
	Run     string       `json:"run"`
	Changes []api.Change `json:"changes"`
}

// stage is the directory in which an apply works.
type stage struct {
	root  *os.Root // the directory that is changed
	dir   string
	lock  *safefs.LockFile
	begun *journal // of a process that died within its apply; nil: none did
}

// openStage makes the directory, or takes over what a dead process left of it.
func openStage(root *os.Root) (*stage, error) {
	s := &stage{root: root, dir: filepath.Join(root.Name(), stageName)}
	if err := root.Mkdir(stageName, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, notWritten(err)
	}
	if info, err := root.Lstat(stageName); err != nil || !info.IsDir() {
		return nil, fault.New(fault.Conflict, "%s isn't a directory of AOD's", stageName).WithHint("remove it")
	}
	var err error
	if s.lock, err = safefs.Lock(filepath.Join(s.dir, lockName)); errors.Is(err, safefs.ErrLocked) {
		return nil, fault.New(fault.Busy, "another apply works in this directory").WithHint("wait for its end")
	}
	if err != nil {
		return nil, notWritten(err)
	}
	raw, err := safefs.ReadRegular(root, stageName+"/"+journalName, MaxChangesBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return s, s.clear()
	}
	var begun journal
	if err == nil {
		err = json.Unmarshal(raw, &begun)
	}
	if err == nil {
		err = CheckChanges(api.Changes{Changes: begun.Changes})
	}
	if err != nil {
		s.close()
		return nil, fault.Wrap(fault.Conflict, err, "what a killed apply left in %s can't be read", stageName).
			WithHint("remove that directory")
	}
	s.begun = &begun
	return s, nil
}

// clear removes contents that a process left that died before its journal.
func (s *stage) clear() error {
	err := safefs.EachEntry(s.root, stageName, func(entry fs.DirEntry) error {
		if entry.Name() == lockName {
			return nil
		}
		return s.root.RemoveAll(stageName + "/" + entry.Name())
	})
	return notWritten(err)
}

// begin writes the journal, when all contents are on the disk.
func (s *stage) begin(j journal) error {
	raw, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode journal: %w", err)
	}
	if err := safefs.SyncTree(s.dir, s.root.Name()); err != nil {
		return notWritten(err)
	}
	return notWritten(safefs.Replace(filepath.Join(s.dir, journalName), raw,
		safefs.ReplaceOptions{Mode: 0o600, Synced: true, OneWriter: true}))
}

// end removes the directory: the journal first, as what is left without one is nothing.
func (s *stage) end() error {
	err := errors.Join(safefs.IgnoreMissing(s.root.Remove(stageName+"/"+journalName)), s.root.RemoveAll(stageName))
	s.close()
	return notWritten(err)
}

func (s *stage) close() { _ = s.lock.Close() } // it holds no data

// content is the name of a staged content.
func content(n int) string { return fmt.Sprintf("%s/%d", stageName, n) }

// notWritten is the fault of a directory that can't be changed, or nil without an error.
func notWritten(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "the directory can't be changed: %s", safefs.Reason(err)).
		WithHint("can it be written to, and is there room? The same command goes on where this one stopped")
}
