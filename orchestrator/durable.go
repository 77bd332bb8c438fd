package orchestrator

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// A row of the store is on the disk when it is told of. The files that it speaks of must be
// there before: else a loss of power leaves a run without its input, and a result without its
// files.

// inputFile is an input file of a stored run.
type inputFile struct {
	Name   string `json:"name"` // below InputDir, slash-separated
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// keepInputs takes the input files, which are where they belong, into the stored run, and
// writes them to the disk. A run that no other process goes on with needs neither.
func (j *job) keepInputs() error {
	files := j.Input.Files
	j.Input.Files = nil
	if !j.Durable || len(files) == 0 {
		return nil
	}
	for _, f := range files {
		kept, err := describeInput(j.InputDir(), f.Name, f.SHA256)
		if err != nil {
			return run.StorageFault(err)
		}
		j.private.Inputs = append(j.private.Inputs, kept)
	}
	return run.StorageFault(safefs.SyncTree(j.InputDir(), j.loop.home.Runs))
}

// describeInput reads a file of the input, but for one whose digest is known.
func describeInput(dir, name, known string) (inputFile, error) {
	f, info, err := safefs.OpenNamed(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return inputFile{}, err
	}
	defer func() { _ = f.Close() }() // read only
	if known != "" {
		return inputFile{Name: name, Size: info.Size(), SHA256: known}, nil
	}
	size, sum, err := safefs.Digest(f)
	return inputFile{Name: name, Size: size, SHA256: sum}, err
}

// checkInputs holds the input files of a run that an earlier process accepted against what was
// stored of them, once. The error is a fault.
func (j *job) checkInputs() error {
	if !j.recovered {
		return nil
	}
	j.recovered = false
	if err := j.checkProject(); err != nil {
		return err
	}
	if len(j.private.Inputs) == 0 { // then a loss of power may have taken the directory along
		return run.StorageFault(os.MkdirAll(j.InputDir(), 0o755))
	}
	for _, want := range j.private.Inputs {
		if got, err := describeInput(j.InputDir(), want.Name, ""); err != nil || got != want {
			return fault.Wrap(fault.Internal, err, "input lost: a file of it isn't what was accepted").
				WithHint("submit it again; the disk may have failed, or files of the data directory were changed")
		}
	}
	return nil
}

// synced writes the output files to the disk before the run's end is stored. If that fails,
// the result is the fault.
func (j *job) synced(ctx context.Context, result run.Result) run.Result {
	if !j.Durable {
		return result
	}
	var err error
	if len(result.Files) > 0 {
		err = safefs.SyncTree(j.OutputDir(), j.loop.home.Runs)
	}
	if err == nil && j.Record.Changes != nil {
		err = safefs.SyncTree(j.ChangesDir(), j.loop.home.Runs)
	}
	if err != nil {
		return run.Fault(ctx, run.StorageFault(err))
	}
	return result
}

// openWhole opens an output file that is what its record says. One of an earlier process is
// read once before.
func (s *Service) openWhole(root *os.Root, id string, file api.File) (*os.File, error) {
	f, info, err := safefs.OpenRegular(root, file.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.NotFound, err, "the run's file is gone")
	}
	if err == nil && info.Size() != file.SizeBytes {
		err = errors.New("its size differs")
	}
	if err == nil && info.ModTime().Before(s.opened) {
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
