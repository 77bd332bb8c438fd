package flow

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// files are the bytes of the files in a state, each under its digest: links to files that
// nobody writes to. What they were taken from may go.
type files struct {
	dir     string // is made by the first of them
	durable bool   // they have to be on the disk before a step speaks of them
}

// add keeps the bytes of a file that lies at a path.
func (s *files) add(ctx context.Context, path string, f flow.File) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return run.StorageFault(err)
	}
	target, err := s.path(f)
	if err != nil {
		return err
	}
	err = os.Link(path, target)
	switch {
	case err == nil, errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.Internal, err, "a file of the call is gone")
	}
	return s.copy(path, target)
}

// copy is for file systems that make no link, or not one more.
func (s *files) copy(path, target string) (err error) {
	in, _, err := safefs.OpenNamed(path)
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { _ = in.Close() }() // read only
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // holds no data
	temp := safefs.TempName()
	if _, err := safefs.Copy(root, temp, in, 0o600); err != nil {
		return run.StorageFault(errors.Join(err, safefs.IgnoreMissing(root.Remove(temp))))
	}
	if s.durable {
		err = safefs.Sync(filepath.Join(s.dir, temp))
	}
	return run.StorageFault(errors.Join(err, root.Rename(temp, filepath.Base(target))))
}

// sync writes the names of files that were added to the disk.
func (s *files) sync(added int) error {
	if added == 0 || !s.durable {
		return nil
	}
	return run.StorageFault(errors.Join(safefs.Sync(s.dir), safefs.Sync(filepath.Dir(s.dir))))
}

// saveInput keeps the input of the flow.
func (s *files) saveInput(input map[string]any) error {
	raw, err := flow.Encode(input)
	if err != nil {
		return err
	}
	return run.StorageFault(safefs.Replace(filepath.Join(s.dir, run.FlowInputFile), raw,
		safefs.ReplaceOptions{Mode: 0o600, Synced: true}))
}

// path returns where a file lies. A digest may come from a store that somebody changed.
func (s *files) path(f flow.File) (string, error) {
	if raw, err := hex.DecodeString(f.SHA256); err != nil || len(raw) != 32 {
		return "", fault.New(fault.Internal, "a file of the state has no digest")
	}
	return filepath.Join(s.dir, f.SHA256), nil
}

// open opens the files that have names, by those. After an error all are closed.
func (s *files) open(n *flow.Names) (map[string]*os.File, error) {
	opened := map[string]*os.File{}
	for _, f := range n.Files() {
		file, err := s.openOne(f)
		if err != nil {
			for _, file := range opened {
				_ = file.Close() // read only
			}
			return nil, err
		}
		opened[n.Of(f)] = file
	}
	return opened, nil
}

func (s *files) openOne(f flow.File) (*os.File, error) {
	path, err := s.path(f)
	if err != nil {
		return nil, err
	}
	file, info, err := safefs.OpenNamed(path)
	if err == nil && info.Size() != f.SizeBytes {
		err = errors.Join(errors.New("its size differs"), file.Close())
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "a file of the state is lost")
	}
	return file, nil
}
