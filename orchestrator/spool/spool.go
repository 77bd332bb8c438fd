// Package spool receives the files of a submission before its run exists.
//
//	New              makes an empty spool, in a directory of its own
//	Spool.Add        receives a file, while there is room for it
//	Spool.AddProject receives the project that the run works on
//	Spool.Inputs     are the files as a run takes them, Spool.Project what stores its project
//	Spool.Remove     removes what no run took
//
// It must not know who submits, what the files are for, or how a run is made.
//
// Its Go API may change with every release: see docs/stability.md.
package spool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Spool receives the files of a submission before its run exists. One goroutine at a time
// may use it.
type Spool struct {
	dir   string
	room  func(need int64) error
	files []File

	project *File // a tar; nil: none
}

// File is a received file. AOD chooses its name on disk.
type File struct {
	Field  string
	Name   string // as its client calls it
	Path   string
	Size   int64 // bytes
	SHA256 string
}

// New returns an empty spool in a new directory below dir. It asks room, now and as files come,
// whether so many more bytes may be written. The caller removes the spool if no submission took it.
func New(dir string, room func(need int64) error) (*Spool, error) {
	if err := room(0); err != nil {
		return nil, err
	}
	id, err := run.NewID()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, run.StorageFault(err)
	}
	return &Spool{dir: dir, room: room}, nil
}

// Add receives a file for a field of the input, with the name that its client gives it. More
// than limit bytes are a TooLarge fault.
func (p *Spool) Add(field, name string, r io.Reader, limit int64) error {
	file, err := p.receive(strconv.Itoa(len(p.files)), field, r, limit)
	if err != nil {
		return err
	}
	file.Field, file.Name = field, name
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
func (p *Spool) receive(as, what string, r io.Reader, limit int64) (File, error) {
	path := filepath.Join(p.dir, as)
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return File{}, run.StorageFault(err)
	}
	sum := sha256.New()
	in := &run.Source{Reader: io.LimitReader(r, limit+1)}
	kept := &roomWriter{Writer: out, room: p.room}
	size, err := io.Copy(io.MultiWriter(kept, sum), in)
	err = errors.Join(err, out.Close())
	switch {
	case in.Err != nil:
		return File{}, fmt.Errorf("receive file: %w", in.Err)
	case kept.err != nil:
		return File{}, kept.err
	case err != nil:
		return File{}, run.StorageFault(err)
	case size > limit:
		return File{}, fault.New(fault.TooLarge, "the file for %q has more than %d bytes", what, limit).
			WithHint("the setting upload_limit says how much a request may bring")
	}
	return File{Path: path, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// Remove deletes the files that no run took. It may be called again, and of nil does nothing.
func (p *Spool) Remove() error {
	if p == nil {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// Link adds a file that lies elsewhere on the same disk, by a link to it. It has the field, the name,
// the size and the digest of f, as far as these are known.
func (p *Spool) Link(path string, f File) error {
	f.Path = filepath.Join(p.dir, strconv.Itoa(len(p.files)))
	p.files = append(p.files, f)
	return os.Link(path, f.Path)
}

// Dir is the directory of the spool, for files that don't come by Add. Remove removes them as well.
func (p *Spool) Dir() string { return p.dir }

// Files are the files that were received, or linked, but for the project; nil has none.
func (p *Spool) Files() []File {
	if p == nil {
		return nil
	}
	return p.files
}

// Inputs are the files as those of a run, which takes them; nil has none.
func (p *Spool) Inputs() []run.InputFile {
	if p == nil {
		return nil
	}
	files := make([]run.InputFile, len(p.files))
	for i, f := range p.files {
		files[i] = run.InputFile{Field: f.Field, Name: f.Name, Path: f.Path, Ours: true, SHA256: f.SHA256}
	}
	return files
}

// Digest returns a digest of the files' fields, names and contents, for the fingerprint of a
// submission.
func (p *Spool) Digest() string {
	if p == nil {
		return ""
	}
	var all strings.Builder
	for _, f := range p.files {
		fmt.Fprintf(&all, "%q %q %s\n", f.Field, f.Name, f.SHA256)
	}
	if p.project != nil {
		fmt.Fprintf(&all, "workspace %s\n", p.project.SHA256)
	}
	return all.String()
}

// Project returns what stores the project of a submission; nil: it has none.
func (p *Spool) Project() run.PlaceProject {
	if p == nil || p.project == nil {
		return nil
	}
	return func(_ context.Context, dir string, o workspace.Options) (workspace.Manifest, error) {
		f, _, err := safefs.OpenNamed(p.project.Path)
		if err != nil {
			return workspace.Manifest{}, run.StorageFault(err)
		}
		defer func() { _ = f.Close() }() // read only
		return workspace.Unpack(dir, f, o)
	}
}

// roomStep is how much is received between two looks at the room that is left.
const roomStep = 8 << 20

// roomWriter stops writing where the room ends: many may write at once.
type roomWriter struct {
	io.Writer
	room func(need int64) error
	left int64 // bytes until the next look
	err  error // why it stopped
}

func (w *roomWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		if w.err = w.room(0); w.err != nil {
			return 0, w.err
		}
		w.left = roomStep
	}
	return w.Writer.Write(p)
}
