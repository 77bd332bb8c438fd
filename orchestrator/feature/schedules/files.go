package schedules

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// fileStore has the files that schedules give to their runs, a directory for those of one.
type fileStore struct {
	dir    string
	logger *slog.Logger
}

func (d fileStore) path(dir string) string { return filepath.Join(d.dir, dir) }

// file is a file that each run of a schedule gets.
type file struct {
	Field  string `json:"field"`
	Name   string `json:"name"` // as its client calls it
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

func (f file) shown() api.File {
	shown := api.File{Name: f.Name, SizeBytes: f.Size, SHA256: f.SHA256}
	if f.Field != "" {
		pointer := "/" + strings.ReplaceAll(f.Field, ".", "/")
		shown.Pointer = &pointer
	}
	return shown
}

// filesOf describes the files that were received for a schedule.
func filesOf(files *spool.Spool) (all []file) {
	for _, f := range files.Files() {
		all = append(all, file{Field: f.Field, Name: f.Name, Size: f.Size, SHA256: f.SHA256})
	}
	return all
}

// keepFiles moves received files to a directory of their own, which is on the disk then. It
// returns the directory's name; "" for no files.
func (d fileStore) keep(files *spool.Spool) (dir string, err error) {
	if len(files.Files()) == 0 {
		return "", nil
	}
	if dir, err = run.NewID(); err != nil {
		return "", err
	}
	path := d.path(dir)
	err = os.Mkdir(path, 0o700)
	for i, f := range files.Files() {
		if err == nil {
			err = os.Rename(f.Path, filepath.Join(path, strconv.Itoa(i)))
		}
	}
	if err == nil {
		err = safefs.SyncTree(path, filepath.Dir(path))
	}
	if err != nil {
		return "", errors.Join(run.StorageFault(err), safefs.RemoveTree(path))
	}
	return dir, nil
}

// link links the files of a schedule, which are in a directory, into a spool for one of its runs; nil for none.
func (d fileStore) link(dir string, files []file, subs feature.Submissions) (*spool.Spool, error) {
	if len(files) == 0 {
		return nil, nil
	}
	linked, err := subs.NewSpool()
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		path := filepath.Join(d.path(dir), strconv.Itoa(i))
		if err := linked.Link(path,
			spool.File{Field: f.Field, Name: f.Name, Size: f.Size, SHA256: f.SHA256}); err != nil {
			return nil, errors.Join(run.StorageFault(err), linked.Remove())
		}
	}
	return linked, nil
}

// dropFiles removes files that no schedule has any more. What can't be removed now is
// removed when the next process starts.
func (d fileStore) drop(dir string) {
	if dir == "" {
		return
	}
	if err := safefs.RemoveTree(d.path(dir)); err != nil {
		d.logger.Warn("files of a schedule not removed", fault.LogAttr(err))
	}
}

// sweep removes the directories that no schedule needs.
func (d fileStore) sweep(needed map[string]bool) error {
	entries, err := os.ReadDir(d.dir)
	for _, entry := range entries {
		if !needed[entry.Name()] {
			err = errors.Join(err, safefs.RemoveTree(d.path(entry.Name())))
		}
	}
	return err
}
