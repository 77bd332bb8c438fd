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
	"github.com/agent-on-demand/aod/safefs"
)

// Spool receives the files of a submission before there is a run for them. It is used
// by one goroutine at a time.
type Spool struct {
	dir   string
	files []spooled
}

// spooled is a file under a name of ours.
type spooled struct {
	field  string
	name   string // as its client calls it
	path   string
	size   int64
	sha256 string
}

// NewSpool returns an empty spool. Remove it when nobody took it over.
func (s *Service) NewSpool() (*Spool, error) {
	id, err := newRunID("")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.path("spool"), id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, noRoom(err)
	}
	return &Spool{dir: dir}, nil
}

func noRoom(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the data directory can't be written").
		WithHint("is the disk full? `aod prune` removes old runs")
}

// Add takes a file for a field of the input, under the name that its client gives it.
// One of more than limit bytes is a TooLarge fault.
func (p *Spool) Add(field, name string, r io.Reader, limit int64) error {
	path := filepath.Join(p.dir, strconv.Itoa(len(p.files)))
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return noRoom(err)
	}
	sum := sha256.New()
	in := &source{r: io.LimitReader(r, limit+1)}
	size, err := io.Copy(io.MultiWriter(out, sum), in)
	err = errors.Join(err, out.Close())
	switch {
	case in.err != nil:
		return fmt.Errorf("receive file: %w", in.err)
	case err != nil:
		return noRoom(err)
	case size > limit:
		return fault.New(fault.TooLarge, "the file for %q has more than %d bytes", field, limit).
			WithHint("the setting upload_limit says how much a request may bring")
	}
	p.files = append(p.files, spooled{field: field, name: name, path: path, size: size, sha256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// source remembers its own error, to tell it from those of who writes.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// Remove deletes what nobody took. It may be called again.
func (p *Spool) Remove() error { return os.RemoveAll(p.dir) }

func (p *Spool) inputs() []InputFile {
	if p == nil {
		return nil
	}
	files := make([]InputFile, len(p.files))
	for i, f := range p.files {
		files[i] = InputFile{Field: f.field, Name: f.name, Path: f.path}
	}
	return files
}

// digest names the files by what they are, for the fingerprint of a submission.
func (p *Spool) digest() string {
	if p == nil {
		return ""
	}
	var all strings.Builder
	for _, f := range p.files {
		fmt.Fprintf(&all, "%q %q %s\n", f.field, f.name, f.sha256)
	}
	return all.String()
}

// placeInputs moves the files of a request to the directory of a run's input.
func placeInputs(dir string, files []placedFile) error {
	for _, f := range files {
		target := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return noRoom(err)
		}
		if err := os.Rename(f.source, target); err != nil {
			return noRoom(err)
		}
		if err := os.Chmod(target, 0o644); err != nil {
			return noRoom(err)
		}
	}
	return nil
}

// removeRun deletes what is kept of a run.
func removeRun(dir string) error {
	if err := safefs.RemoveTree(dir); err != nil {
		return fmt.Errorf("remove run's files: %w", err)
	}
	return nil
}
