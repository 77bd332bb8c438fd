package records

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Files opens what runs have left: output files, and what they made of their workspaces. It is safe for concurrent
// use.
type Files struct {
	runs  *Reader
	since time.Time // of this process: an older file is read once before somebody gets it
	whole wholeFiles
}

// NewFiles returns the Files of runs, for a process that began at a time.
func NewFiles(runs *Reader, since time.Time) *Files { return &Files{runs: runs, since: since} }

// Open opens an output file of a run for reading. The file has to be in its record.
func (s *Files) Open(ctx context.Context, id, name string) (*os.File, api.File, error) {
	record, err := s.runs.Get(ctx, id)
	if err != nil {
		return nil, api.File{}, err
	}
	for _, file := range record.Files {
		if file.Name != name {
			continue
		}
		root, err := os.OpenRoot(s.runs.output(id))
		if err != nil {
			return nil, api.File{}, fault.Wrap(fault.NotFound, err, "the run's files are gone")
		}
		defer func() { _ = root.Close() }() // holds no data
		f, err := s.OpenWhole(root, id, file)
		return f, file, err
	}
	return nil, api.File{}, fault.New(fault.NotFound, "the run has no such file").WithHint("its record lists its files")
}

// RunDir implements feature.Library.
func (s *Files) RunDir(ctx context.Context, id string) (string, error) {
	_, err := s.runs.Get(ctx, id)
	return s.runs.dir(id), err
}

// OpenInput opens a file that a run was given, of those that Service.InputOf lists.
func (s *Files) OpenInput(ctx context.Context, id, name string) (*os.File, api.File, error) {
	record, err := s.runs.Get(ctx, id)
	if err == nil {
		err = run.CheckRerun(record)
	}
	if err != nil {
		return nil, api.File{}, err
	}
	root, err := os.OpenRoot(filepath.Join(s.runs.dir(id), layout.Input))
	if err != nil {
		return nil, api.File{}, fault.Wrap(fault.NotFound, err, "no file that the run was given is kept")
	}
	defer func() { _ = root.Close() }() // holds no data
	f, info, err := safefs.OpenRegular(root, name)
	if err != nil {
		return nil, api.File{}, fault.Wrap(fault.NotFound, err, "the run was given no such file")
	}
	return f, api.File{Name: name, SizeBytes: info.Size()}, nil
}

// OpenWhole implements feature.Library. A file of an earlier process is read once before.
func (s *Files) OpenWhole(root *os.Root, id string, file api.File) (*os.File, error) {
	f, info, err := safefs.OpenRegular(root, file.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.NotFound, err, "the run's file is gone")
	}
	if err == nil && info.Size() != file.SizeBytes {
		err = errors.New("its size differs")
	}
	if err == nil && info.ModTime().Before(s.since) {
		err = s.whole.check(id+"/"+file.Name, func() error { return hasDigest(f, file.SHA256) })
	}
	if err == nil {
		return f, nil
	}
	if f != nil {
		_ = f.Close() // read only
	}
	return nil, fault.Wrap(fault.Internal, err, "a file of the run is damaged")
}

func hasDigest(f *os.File, want string) error {
	_, got, err := safefs.Digest(f)
	if err == nil && got != want {
		err = errors.New("its content differs")
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	return err
}

// Changes opens what a run made of the files of its workspace, as JSON (api.Changes). The error
// is a NotFound fault if it changed none, as it had no workspace or could only read it.
func (s *Files) Changes(ctx context.Context, id string) (*os.File, error) {
	return s.openChanges(ctx, id, workspace.ChangesName)
}

// Patch is Changes in git's format.
func (s *Files) Patch(ctx context.Context, id string) (*os.File, error) {
	return s.openChanges(ctx, id, workspace.PatchName)
}

// PatchOf is Patch for one of the changed files alone.
func (s *Files) PatchOf(ctx context.Context, id, name string) (io.ReadSeekCloser, error) {
	patch, err := s.Patch(ctx, id)
	if err != nil {
		return nil, err
	}
	part, err := workspace.PatchOf(patch, name)
	switch {
	case err != nil:
		err = run.StorageFault(err)
	case part == nil:
		err = unchanged(id, nil)
	}
	if err != nil {
		return nil, errors.Join(err, patch.Close())
	}
	return struct {
		*io.SectionReader
		io.Closer
	}{part, patch}, nil
}

func unchanged(id string, err error) error {
	return fault.Wrap(fault.NotFound, err, "the run changed no such file").WithHint("`aod diff %s` shows them", id)
}

func (s *Files) openChanges(ctx context.Context, id, name string) (*os.File, error) {
	record, err := s.runs.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if record.Changes == nil {
		return nil, fault.New(fault.NotFound, "the run has no changes").
			WithHint("it has them when it ended, was given a workspace, and its unit may write to it (access: " +
				"read-write, or workspace.write)")
	}
	f, _, err := safefs.OpenNamed(filepath.Join(s.runs.dir(id), layout.Changes, name))
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the run's changes are gone")
	}
	return f, nil
}

// OpenChanged opens the new content of a file that a run changed: of a link its target.
func (s *Files) OpenChanged(ctx context.Context, id, name string) (*os.File, api.File, error) {
	list, err := s.Changes(ctx, id)
	if err != nil {
		return nil, api.File{}, err
	}
	_ = list.Close() // it is there
	root, err := os.OpenRoot(filepath.Join(s.runs.dir(id), layout.Changes))
	if err != nil {
		return nil, api.File{}, fault.Wrap(fault.NotFound, err, "the run's changes are gone")
	}
	defer func() { _ = root.Close() }() // holds no data
	f, info, err := safefs.OpenRegular(root, path.Join(workspace.ContentsName, name))
	if err != nil {
		return nil, api.File{}, unchanged(id, err)
	}
	return f, api.File{Name: name, SizeBytes: info.Size()}, nil
}

// wholeFiles remembers the files that were read and found to be what their records say.
type wholeFiles struct {
	mu    sync.Mutex
	known map[string]bool
}

const maxWhole = 4096

func (w *wholeFiles) check(name string, read func() error) error {
	w.mu.Lock()
	known := w.known[name]
	w.mu.Unlock()
	if known {
		return nil
	}
	if err := read(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil || len(w.known) >= maxWhole {
		w.known = map[string]bool{}
	}
	w.known[name] = true
	return nil
}
