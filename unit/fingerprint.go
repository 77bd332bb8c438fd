package unit

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// granularity is by how much the stamp of a change can lie before the change itself:
// kernels take it from a clock that ticks a hundred times a second, or more often.
const granularity = 20 * time.Millisecond

var seed = maphash.MakeSeed()

// fingerprint tells one state of a directory's files from others without reading them.
type fingerprint struct {
	sum    uint64
	newest int64 // the last change of any file, in nanoseconds of Unix time
}

// settledBefore reports whether the files were at rest when a reading of them began.
// Where they weren't, a change may hide behind a stamp that was seen already.
func (f fingerprint) settledBefore(began time.Time) bool {
	return f.newest < began.Add(-granularity).UnixNano()
}

// watch says what is looked at for changes.
type watch struct {
	names []string // relative
	all   bool     // the whole tree instead
}

// watchOf watches what a version would hold. Everything is watched where that isn't
// known, or where patterns of .dockerignore could take in what is in no list yet.
func watchOf(dir string, files *content) watch {
	if files == nil || hasExceptions(dir) {
		return watch{all: true}
	}
	names := append([]string{"."}, files.names()...)
	return watch{names: append(names, definitions...)}
}

func hasExceptions(dir string) bool {
	for _, name := range ignoreFiles {
		raw, err := readSmall(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(bytes.NewReader(raw))
		for lines.Scan() {
			if strings.HasPrefix(strings.TrimSpace(lines.Text()), "!") {
				return true
			}
		}
	}
	return false
}

// fingerprint looks at the files now.
func (w watch) fingerprint(dir string) fingerprint {
	var p printer
	p.sum.SetSeed(seed)
	if w.all {
		_ = filepath.WalkDir(dir+"/.", func(path string, _ fs.DirEntry, err error) error {
			p.add(path, path)
			if err != nil {
				return fs.SkipDir // it is in the fingerprint as far as it can be
			}
			return nil
		})
		return p.fingerprint()
	}
	for _, name := range w.names {
		p.add(name, dir+"/"+name)
	}
	return p.fingerprint()
}

// printer gathers a fingerprint.
type printer struct {
	sum    maphash.Hash
	newest int64
	stat   unix.Stat_t
	buffer [6]int64
}

func (p *printer) fingerprint() fingerprint {
	return fingerprint{sum: p.sum.Sum64(), newest: p.newest}
}

func (p *printer) add(name, path string) {
	_, _ = p.sum.WriteString(name) // never fails
	_ = p.sum.WriteByte(0)
	s := &p.stat
	if err := unix.Lstat(path, s); err != nil {
		_ = p.sum.WriteByte(1)
		return
	}
	changed := s.Ctim.Nano()
	p.newest = max(p.newest, changed)
	//nolint:gosec,unconvert // only differences count; the fields' types differ between systems
	p.buffer = [6]int64{int64(s.Mode), int64(s.Size), s.Mtim.Nano(), changed, int64(s.Ino), int64(s.Dev)}
	_ = binary.Write(&p.sum, binary.NativeEndian, p.buffer[:])
}
