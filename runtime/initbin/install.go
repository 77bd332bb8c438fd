package initbin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// mode lets every user of every container run the program, and nobody write it.
const mode fs.FileMode = 0o555

// Installer installs init programs. It remembers which files it has compared. The zero value
// is ready for use, by any number of goroutines.
type Installer struct {
	mu       sync.Mutex
	programs map[string]program // by architecture
	verified map[string]bool    // the paths whose content was compared
}

// program is an init program.
type program struct {
	name string // of its file; it comes of the content
	size int64
	read func() ([]byte, error)

	sum [sha256.Size]byte // what an installed file is held against; zero: its name and size are enough
	old time.Duration     // files of its like that were written so long ago are removed; zero: they stay
}

// embeddedProgram returns an init program of this content.
func embeddedProgram(raw []byte) program {
	sum := sha256.Sum256(raw)
	return program{
		name: "aod-init-" + hex.EncodeToString(sum[:])[:12],
		size: int64(len(raw)),
		read: func() ([]byte, error) { return raw, nil },
		sum:  sum,
	}
}

// Install makes sure that dir holds the init program for arch and returns its path. The name
// comes of the program's content: programs of several versions stand side by side, and one that
// running sandboxes use is never changed. Install makes dir when it is missing; only trusted
// users may write there.
//
// The content is compared once for each path; after that a call costs one lstat. That of this
// program itself, where it is the init, isn't: it is large, and written whole or not at all.
// Any number of processes may install at once. Errors are those of Check, and Internal when the
// file can't be written.
func (i *Installer) Install(dir, arch string) (path string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p, err := i.program(arch)
	if err != nil {
		return "", err
	}
	return i.install(dir, p)
}

// program returns the program for arch, whose digest is computed once.
func (i *Installer) program(arch string) (program, error) {
	if p, ok := i.programs[arch]; ok {
		return p, nil
	}
	raw, err := embeddedIn(embedded, "aod-init", arch)
	if err != nil {
		return program{}, err
	}
	p := embeddedProgram(raw)
	if raw == nil {
		if p, err = own(arch); err != nil {
			return program{}, err
		}
	}
	if i.programs == nil {
		i.programs = map[string]program{}
	}
	i.programs[arch] = p
	return p, nil
}

func (i *Installer) install(dir string, p program) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "find the directory of the init program")
	}
	path := filepath.Join(dir, p.name)
	if err := i.ensure(path, p); err != nil {
		return "", fault.Wrap(fault.Internal, err, "install the init program").
			WithHint("check the data directory's permissions and its free space")
	}
	return path, nil
}

// ensure writes the program unless it is at path. It compares the content the first time,
// and again after a failure.
func (i *Installer) ensure(path string, p program) error {
	if i.verified[path] && looksRight(path, p.size) {
		return nil
	}
	delete(i.verified, path)
	if !looksRight(path, p.size) || !holds(path, p) {
		if err := replace(path, p); err != nil {
			return err
		}
	}
	if i.verified == nil {
		i.verified = map[string]bool{}
	}
	i.verified[path] = true
	return nil
}

// looksRight reports whether a regular file of the right size and mode is there.
func looksRight(path string, size int64) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode() == mode && info.Size() == size
}

// holds reports whether the file at path is the program.
func holds(path string, p program) bool {
	if p.sum == ([sha256.Size]byte{}) {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, p.size+1)); err != nil {
		return false
	}
	return bytes.Equal(h.Sum(nil), p.sum[:])
}

// replace writes a new file and renames it over whatever is at path.
func replace(path string, p program) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	raw, err := p.read()
	if err != nil {
		return err
	}
	if p.old > 0 {
		forget(dir, path, p.old)
	}
	return safefs.Replace(path, raw, safefs.ReplaceOptions{Mode: mode, Synced: true})
}
