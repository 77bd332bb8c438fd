package quota

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// checked has what Check found, by the number of the file system.
var checked struct {
	mu    sync.Mutex
	found map[uint64]error
}

// Check returns nil where a directory's file system keeps project quotas that this process may set, and else an
// ErrUnsupported with the reason. It tries that once for each file system.
func Check(dir string) error {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	checked.mu.Lock()
	defer checked.mu.Unlock()
	err, known := checked.found[stat.Dev]
	if known {
		return err
	}
	if err = try(dir); err != nil {
		err = fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	if checked.found == nil {
		checked.found = map[uint64]error{}
	}
	checked.found[stat.Dev] = err
	return err
}

// try bounds a directory of its own and reads back what the kernel made of it.
func try(dir string) (err error) {
	if err := enforced(dir); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(dir, ".temp-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(scratch)) }()
	p, err := unused(scratch)
	if err != nil {
		return err
	}
	if err := errors.Join(p.Give(scratch), p.Limit(1<<20, 10)); err != nil {
		return err
	}
	got, err := p.get()
	if err == nil && (got.blockHard != 1<<10 || got.inodeHard != 10 || got.inodes != 1 || Of(scratch).id != p.id) {
		err = errors.New("the kernel doesn't keep what is set")
	}
	p.dir = dir // the other goes
	return errors.Join(err, p.Limit(0, 0))
}

// New returns the project of a directory, to which nothing belongs yet. It goes where the directory is moved to. The
// error is an ErrUnsupported, also where somebody else bounds the directory already.
func New(dir string) (Project, error) {
	if err := Check(dir); err != nil {
		return Project{}, err
	}
	p, err := unused(dir)
	if err != nil {
		return Project{}, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return p, nil
}

// unused returns the project of a directory if no file is in it.
func unused(dir string) (Project, error) {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return Project{}, err
	}
	p := Project{dir, idOf(stat.Ino)}
	if attr, err := attributesOf(dir); err != nil {
		return Project{}, err
	} else if attr.flags&inherit != 0 {
		return Project{}, errors.New("the directory is in a project already")
	}
	if got, err := p.get(); err != nil || got.space == 0 && got.inodes == 0 {
		return p, err
	}
	return Project{}, errors.New("the directory's project has files elsewhere")
}

// Of returns the project that a file or directory has by Give; the zero one where it has none.
func Of(path string) Project {
	attr, err := attributesOf(path)
	if err != nil || attr.project < first {
		return Project{}
	}
	return Project{path, attr.project}
}

// Give makes a file or a directory the project's, and what is made in that from now on. Nothing can be moved or linked
// there from outside of the project then.
func (p Project) Give(path string) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // holds no data
	return setProject(f, p.id)
}

// Take takes an open file or directory out of its project, if that is one of ours.
func Take(f *os.File) error {
	attr, err := attributes(f)
	if err != nil || attr.project < first {
		return nil //nolint:nilerr // a file system without attributes has no projects
	}
	return setProject(f, 0)
}

// Limit bounds the bytes and the number of the project's files; 0 is no bound. The kernel counts them by blocks.
func (p Project) Limit(bytes, files int64) error {
	p.Forget()
	//nolint:gosec // neither is negative
	limits := usage{blockHard: uint64(bytes) >> 10, inodeHard: uint64(files), valid: validLimits}
	return p.call(setQuota, &limits)
}

// slack is how close to its limit a project has met it: no file can grow by a large block any more.
const slack = 64 << 10

// Met reports whether the project met its limit of bytes, or of files: the kernel told of it, or the project is full.
func (p Project) Met() (bytes, files bool) {
	bytes, files = warnings.of(p)
	got, err := p.get()
	if err != nil {
		return bytes, files
	}
	full := got.blockHard > 0 && got.space+slack > got.blockHard<<10
	return bytes || full, files || got.inodeHard > 0 && got.inodes >= got.inodeHard
}

// Forget forgets what the kernel told of the project so far.
func (p Project) Forget() { warnings.forget(p) }

// Sweep removes the limits of projects without a file, which processes that died have left in the file system of a
// directory. Whoever gets such a project sets its limit anew.
func Sweep(dir string) error {
	if err := Check(dir); err != nil {
		return err
	}
	for p := (Project{dir, first}); p.id < math.MaxUint32; p.id++ {
		var next usage
		err := p.call(getNextQuota, &next)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
			return nil // there is none any more
		}
		if err != nil {
			return err
		}
		p.id = next.id
		if next.inodes > 0 || next.space > 0 || next.blockHard == 0 && next.inodeHard == 0 {
			continue
		}
		if err := p.Limit(0, 0); err != nil {
			return err
		}
	}
	return nil
}
