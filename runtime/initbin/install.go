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

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/safefs"
)

// mode lets every user of every container run the program, and nobody write it.
const mode fs.FileMode = 0o555

// Install makes sure that dir holds the init program for arch and returns its path.
// The name is made of its digest, so programs of several versions stand side by side
// and one that running sandboxes use is never changed. dir is created when it isn't
// there; it must be writable by trusted users only.
//
// The content is compared once for each path and process; after that a call costs one
// lstat. Any number of processes may install at once. Errors are those of Binary, and
// Internal when the file can't be written.
func Install(dir, arch string) (path string, err error) {
	once, _ := programs.LoadOrStore(arch, sync.OnceValues(func() (program, error) {
		raw, err := Binary(arch)
		return program{raw, sha256.Sum256(raw)}, err
	}))
	p, err := once.(func() (program, error))()
	if err != nil {
		return "", err
	}
	return install(dir, p)
}

// program is an init program with its digest.
type program struct {
	raw []byte
	sum [sha256.Size]byte
}

var programs sync.Map // architecture -> what returns its program, read once

func install(dir string, p program) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "find the directory of the init program")
	}
	path := filepath.Join(dir, "aod-init-"+hex.EncodeToString(p.sum[:])[:12])
	if err := slotOf(path).ensure(path, p); err != nil {
		return "", fault.Wrap(fault.Internal, err, "install the init program").
			WithHint("check the data directory's permissions and its free space")
	}
	return path, nil
}

// slot is what this process knows of one path.
type slot struct {
	mu       sync.Mutex
	verified bool
}

var slots sync.Map // path -> *slot

func slotOf(path string) *slot {
	s, _ := slots.LoadOrStore(path, new(slot))
	return s.(*slot)
}

// ensure is a sync.Once that tries again after a failure, and when the file has gone.
func (s *slot) ensure(path string, p program) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verified && looksRight(path, len(p.raw)) {
		return nil
	}
	s.verified = false
	if !looksRight(path, len(p.raw)) || !holds(path, len(p.raw), p.sum) {
		if err := replace(path, p.raw); err != nil {
			return err
		}
	}
	s.verified = true
	return nil
}

// looksRight reports whether a regular file of the right size and mode is there.
func looksRight(path string, size int) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode() == mode && info.Size() == int64(size)
}

// holds reports whether the file at path is the program.
func holds(path string, size int, want [sha256.Size]byte) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, int64(size)+1)); err != nil {
		return false
	}
	return bytes.Equal(h.Sum(nil), want[:])
}

// replace puts a new file in the place of whatever is there, at once and whole.
func replace(path string, program []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return safefs.Replace(path, program, safefs.ReplaceOptions{Mode: mode, Synced: true})
}
