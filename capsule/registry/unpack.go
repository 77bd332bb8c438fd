package registry

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// limits bound an unpacked archive.
type limits struct {
	bytes   int64
	entries int // including implied directories
	name    int // bytes of a name or of a link's target
}

// without bounds nothing: a capsule that was read is bounded already.
var without = limits{bytes: math.MaxInt64, entries: math.MaxInt, name: math.MaxInt}

// unpacker writes tar streams into a directory. Links are made last, so that nothing is
// ever written through one.
type unpacker struct {
	most limits

	root  *os.Root
	seen  map[string]byte // by name: a tar type, or implied
	links []link
	bytes int64
}

// implied marks a directory that has no entry of its own: the name of an entry below
// implies it.
const implied = 'i'

type link struct{ name, target string }

// copyTo copies a content into a new directory.
func (f *content) copyTo(dir string) error {
	u, err := newUnpacker(dir, without)
	if err != nil {
		return err
	}
	defer u.root.Close()
	if err := u.from(f.context.WriteTar); err != nil {
		return err
	}
	if err := u.from(f.writeBesideAgain); err != nil {
		return err
	}
	return u.makeLinks(nil)
}

// Unpack writes a tar of a unit's directory into a new directory, within the bounds of an upload: nothing in it leads
// out. The errors are Input faults.
func Unpack(dir string, from io.Reader) error {
	most := limits{bytes: DefaultMaxBytes, entries: DefaultMaxEntries, name: maxNameBytes}
	u, err := newUnpacker(dir, most)
	if err != nil {
		return err
	}
	defer u.root.Close()
	if err := u.read(from); err != nil {
		return err
	}
	return u.makeLinks(insideOf("", most))
}

func newUnpacker(dir string, most limits) (*unpacker, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, unwritable(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, unwritable(err)
	}
	return &unpacker{most: most, root: root, seen: map[string]byte{}}, nil
}

// from unpacks the tar stream that a function writes.
func (u *unpacker) from(write func(io.Writer) error) error {
	r, w := io.Pipe()
	var writer sync.WaitGroup
	writer.Go(func() { _ = w.CloseWithError(write(w)) })
	err := u.read(r)
	r.Close() // ends a writer that wasn't read to its end
	writer.Wait()
	return err
}

// read unpacks a stream to its end, without the links. A stream without the mark of its end
// is refused: it may be incomplete.
func (u *unpacker) read(r io.Reader) error {
	end := &endReader{from: r}
	t := tar.NewReader(end)
	for headers := 0; ; headers++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) && !end.reached {
			return nil
		}
		if err != nil {
			return unreadableArchive(err)
		}
		if headers == u.most.entries {
			return u.tooMany()
		}
		if err := u.add(h, t); err != nil {
			return err
		}
	}
}

func (u *unpacker) add(h *tar.Header, body io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil // a comment, as git archive writes it
	}
	name, err := u.entryName(h)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.directory(name)
	case tar.TypeReg:
		return u.file(name, h, body)
	case tar.TypeSymlink:
		u.links = append(u.links, link{name: name, target: h.Linkname})
		return u.claim(name, tar.TypeSymlink)
	}
	return refused(h.Name, "it is "+kindOf(h.Typeflag), "a capsule is made of files, directories and symbolic links")
}

// entryName returns an entry's name in its simplest form.
func (u *unpacker) entryName(h *tar.Header) (string, error) {
	if len(h.Name) > u.most.name {
		return "", refused(h.Name, "its name is too long", "give it a shorter one")
	}
	if !filepath.IsLocal(h.Name) || slices.Contains(strings.Split(h.Name, "/"), "..") ||
		strings.ContainsRune(h.Name, 0) {
		return "", refused(h.Name, "its name leads out of the capsule", "make the archive with: tar c -C CAPSULE .")
	}
	return path.Clean(h.Name), nil
}

// claim reserves a name, which must be free and below directories.
func (u *unpacker) claim(name string, kind byte) error {
	if _, taken := u.seen[name]; taken || name == "." {
		return refused(name, "it stands twice in the archive", "keep one of the two")
	}
	if err := u.imply(path.Dir(name)); err != nil {
		return err
	}
	if len(u.seen) >= u.most.entries {
		return u.tooMany()
	}
	u.seen[name] = kind
	return nil
}

// imply makes the directories above an entry that have no entry of their own.
func (u *unpacker) imply(dir string) error {
	switch kind, known := u.seen[dir]; {
	case dir == "." || kind == tar.TypeDir || kind == implied:
		return nil
	case known:
		return refused(dir, "there is something below it, and it isn't a directory",
			"make the archive of a directory as it is")
	}
	if err := u.claim(dir, implied); err != nil {
		return err
	}
	return u.made(dir, u.root.Mkdir(dir, 0o755))
}

func (u *unpacker) directory(name string) error {
	switch {
	case name == ".":
		return nil // it exists
	case u.seen[name] == implied:
		u.seen[name] = tar.TypeDir
		return nil
	}
	if err := u.claim(name, tar.TypeDir); err != nil {
		return err
	}
	return u.made(name, u.root.Mkdir(name, 0o755))
}

// file writes a regular file. Of its mode, only whether it is executable is kept.
func (u *unpacker) file(name string, h *tar.Header, body io.Reader) error {
	if h.Size > u.most.bytes-u.bytes {
		return tooLarge("the archive holds more than %d bytes", u.most.bytes)
	}
	u.bytes += h.Size
	if err := u.claim(name, tar.TypeReg); err != nil {
		return err
	}
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return u.made(name, err)
	}
	mode := fs.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	_, err = io.CopyN(f, body, h.Size)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); isWriteError(err) {
		return unwritable(err)
	}
	if err != nil {
		return unreadableArchive(err)
	}
	return nil
}

// makeLinks makes the links that allowed returns nil for. A nil allowed permits all.
func (u *unpacker) makeLinks(allowed func(link) error) error {
	for _, l := range u.links {
		if allowed != nil {
			if err := allowed(l); err != nil {
				return err
			}
		}
		if err := u.made(l.name, u.root.Symlink(l.target, l.name)); err != nil {
			return err
		}
	}
	return nil
}

// made explains why a name could not be made.
func (u *unpacker) made(name string, err error) error {
	if errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EILSEQ) {
		return refused(name, "no file can have this name", "give it a shorter one")
	}
	return unwritable(err)
}

func isWriteError(err error) bool {
	var p *fs.PathError
	return errors.As(err, &p) && p.Op != "read"
}
