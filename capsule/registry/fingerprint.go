package registry

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"time"
)

// granularity is how far the timestamp of a change can lie before the change itself:
// kernels take it from a clock that ticks a hundred times a second, or more often.
const granularity = 20 * time.Millisecond

var seed = maphash.MakeSeed()

// fingerprint identifies a state of a directory's files without reading them.
type fingerprint struct {
	sum    uint64
	newest int64 // the last change of any file, in nanoseconds of Unix time
}

// settledBefore reports whether the files were at rest when a reading of them began. If
// they weren't, a later change may have a timestamp that was seen already.
func (f fingerprint) settledBefore(began time.Time) bool {
	return f.newest < began.Add(-granularity).UnixNano()
}

// watch says which files are checked for changes.
type watch struct {
	names []string // relative
	all   bool     // the whole tree instead
}

// watchOf watches the files that a version would hold. It watches the whole tree if they
// aren't known, or if patterns of .dockerignore could admit files that are in no list yet.
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
		for line := range bytes.Lines(raw) {
			if bytes.HasPrefix(bytes.TrimSpace(line), []byte("!")) {
				return true
			}
		}
	}
	return false
}

// fingerprint returns the fingerprint of the files as they are now.
func (w watch) fingerprint(dir string) fingerprint {
	var p printer
	p.sum.SetSeed(seed)
	if w.all {
		_ = filepath.WalkDir(dir+"/.", func(path string, _ fs.DirEntry, err error) error {
			p.add(path, path)
			if err != nil {
				return fs.SkipDir // the entry itself is in the fingerprint
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
	stat   stat
	buffer [6]int64
}

func (p *printer) fingerprint() fingerprint {
	return fingerprint{sum: p.sum.Sum64(), newest: p.newest}
}

func (p *printer) add(name, path string) {
	_, _ = p.sum.WriteString(name) // never fails
	_ = p.sum.WriteByte(0)
	var changed int64
	var err error
	if p.buffer, changed, err = p.stat.look(path); err != nil {
		_ = p.sum.WriteByte(1)
		return
	}
	p.newest = max(p.newest, changed)
	_ = binary.Write(&p.sum, binary.NativeEndian, p.buffer[:])
}
