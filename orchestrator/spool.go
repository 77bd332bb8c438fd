package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/safefs"
)

// Spool receives the files of a submission before its run exists. One goroutine at a time
// may use it.
type Spool struct {
	dir   string
	room  func(need int64) error
	files []spooled

	project *spooled // a tar; nil: none
}

// spooled is a received file. AOD chooses its name on disk.
type spooled struct {
	field  string
	name   string // as its client calls it
	path   string
	size   int64
	sha256 string
}

// NewSpool returns an empty spool. The caller removes it if no submission took it.
func (l *loop) NewSpool() (*Spool, error) {
	if err := l.room(0); err != nil {
		return nil, err
	}
	id, err := run.NewID()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(l.home.Dir, "spool", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, run.StorageFault(err)
	}
	return &Spool{dir: dir, room: l.room}, nil
}

// Add receives a file for a field of the input, with the name that its client gives it. More
// than limit bytes are a TooLarge fault.
func (p *Spool) Add(field, name string, r io.Reader, limit int64) error {
	file, err := p.receive(strconv.Itoa(len(p.files)), field, r, limit)
	if err != nil {
		return err
	}
	file.field, file.name = field, name
	p.files = append(p.files, file)
	return nil
}

// AddProject receives the project that the run works on, a tar archive. More than limit bytes
// are a TooLarge fault, a second project is a BadRequest one.
func (p *Spool) AddProject(r io.Reader, limit int64) error {
	if p.project != nil {
		return fault.New(fault.BadRequest, "the form has two workspaces").WithHint("a run works on one project")
	}
	file, err := p.receive("project", "workspace", r, limit)
	if err != nil {
		return err
	}
	p.project = &file
	return nil
}

// receive writes a file of the spool. What it is for is named in faults.
func (p *Spool) receive(as, what string, r io.Reader, limit int64) (spooled, error) {
	path := filepath.Join(p.dir, as)
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return spooled{}, run.StorageFault(err)
	}
	sum := sha256.New()
	in := &run.Source{Reader: io.LimitReader(r, limit+1)}
	kept := &roomWriter{Writer: out, room: p.room}
	size, err := io.Copy(io.MultiWriter(kept, sum), in)
	err = errors.Join(err, out.Close())
	switch {
	case in.Err != nil:
		return spooled{}, fmt.Errorf("receive file: %w", in.Err)
	case kept.err != nil:
		return spooled{}, kept.err
	case err != nil:
		return spooled{}, run.StorageFault(err)
	case size > limit:
		return spooled{}, fault.New(fault.TooLarge, "the file for %q has more than %d bytes", what, limit).
			WithHint("the setting upload_limit says how much a request may bring")
	}
	return spooled{path: path, size: size, sha256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// Remove deletes the files that no run took. It may be called again, and of nil does nothing.
func (p *Spool) Remove() error {
	if p == nil {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// Fields are the fields that files were received for.
func (p *Spool) Fields() (fields []string) {
	for _, f := range p.inputs() {
		fields = append(fields, f.Field)
	}
	return fields
}

func (p *Spool) inputs() []run.InputFile {
	if p == nil {
		return nil
	}
	files := make([]run.InputFile, len(p.files))
	for i, f := range p.files {
		files[i] = run.InputFile{Field: f.field, Name: f.name, Path: f.path, Ours: true, SHA256: f.sha256}
	}
	return files
}

// digest returns a digest of the files' fields, names and contents, for the fingerprint of a
// submission.
func (p *Spool) digest() string {
	if p == nil {
		return ""
	}
	var all strings.Builder
	for _, f := range p.files {
		fmt.Fprintf(&all, "%q %q %s\n", f.field, f.name, f.sha256)
	}
	if p.project != nil {
		fmt.Fprintf(&all, "workspace %s\n", p.project.sha256)
	}
	return all.String()
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
