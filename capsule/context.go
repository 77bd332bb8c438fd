package capsule

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// Limits of a build context. What is larger is almost always data or a virtual
// environment that was never meant for the image.
const (
	maxContextEntries = 100_000
	maxContextBytes   = 4 * quantity.GiB
)

// Context is what is sent to the builder: the capsule's directory without what
// .dockerignore leaves out.
type Context struct {
	// Digest is the hex SHA-256 over names, types, executable bits, link targets and
	// contents. Modification times, owners and the order on disk don't matter.
	Digest string

	dir     string
	entries []entry // sorted: a directory stands before what is in it
}

// entry is one file, directory or link of a context.
type entry struct {
	name string // relative, with slashes
	mode fs.FileMode
	size int64  // of a regular file
	link string // target of a symbolic link, as it stands there
	// hidden: only the builder gets it, and no instruction finds it
	hidden bool
}

// Context reads the capsule's directory as a build context and computes its digest. The
// error is a Capsule fault that names the file: one that can't be read, or isn't a file,
// directory or link, or a context of more than 100,000 entries or 4 GiB.
func (c *Capsule) Context() (*Context, error) {
	src, err := openSource(c.Dir)
	if err != nil {
		return nil, fault.Wrap(fault.Capsule, err, "%s can't be read: %s", c.Dir, safefs.Reason(err)).
			WithHint("make the directory readable")
	}
	defer src.close()
	g, err := readIgnore(src)
	if err != nil {
		return nil, err
	}
	w := walker{source: src, ignore: g}
	if err := w.walk(".", verdict{}); err != nil {
		return nil, err
	}
	x := &Context{dir: c.Dir, entries: w.entries}
	sum := sha256.New()
	if err := x.writeEntries(src, sum); err != nil {
		return nil, err
	}
	x.Digest = hex.EncodeToString(sum.Sum(nil))
	return x, nil
}

// Files lists the names in the context, sorted as they are sent; directories end in "/".
func (x *Context) Files() []string {
	names := make([]string, len(x.entries))
	for i, e := range x.entries {
		names[i] = e.name
		if e.mode.IsDir() {
			names[i] += "/"
		}
	}
	return names
}

// Sends reports whether .dockerignore leaves a file of this name, which need not exist, in the
// build context. The error is a Capsule fault.
func (c *Capsule) Sends(name string) (bool, error) {
	src, err := openSource(c.Dir)
	if err != nil {
		return false, fault.Wrap(fault.Capsule, err, "%s can't be read: %s", c.Dir, safefs.Reason(err)).
			WithHint("make the directory readable")
	}
	defer src.close()
	g, err := readIgnore(src)
	if err != nil {
		return false, err
	}
	out, seen := false, verdict{}
	for i, r := range name + "/" {
		if r == '/' {
			if out, seen, err = g.excludes(name[:i], seen); err != nil {
				return false, err
			}
		}
	}
	return !out || alwaysSent[name], nil
}

// WriteTar writes the context as a tar stream: the same bytes for the same digest. It
// can be called again. When the directory isn't any more what Context saw, the error is
// a Capsule fault and the stream is left without its end, so that no builder takes it.
func (x *Context) WriteTar(w io.Writer) error {
	src, err := openSource(x.dir)
	if err != nil {
		return fault.Wrap(fault.Capsule, err, "the capsule's directory can't be read any more: %s", safefs.Reason(err)).
			WithHint("try again")
	}
	defer src.close()
	sum := sha256.New()
	if err := x.writeEntries(src, io.MultiWriter(w, sum)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != x.Digest {
		return changed("the directory")
	}
	return sendFault(tar.NewWriter(w).Close()) // the two empty blocks at the end of a stream
}

// changed is the fault for files that didn't hold still.
func changed(what string) *fault.Error {
	return fault.New(fault.Capsule, "%s changed while it was sent to the builder", what).
		WithHint("try again when nothing writes into the capsule's directory, or leave the file out with .dockerignore")
}

// walker gathers the entries of a context.
type walker struct {
	source  source
	ignore  ignore
	entries []entry
	bytes   int64
}

// walk adds what is in a directory, in the order of the names. It recurses as deep as
// the kernel lets paths be.
func (w *walker) walk(dir string, parent verdict) error {
	children, err := fs.ReadDir(w.source.root.FS(), dir)
	if err != nil {
		return badContext(dir, "it can't be read: "+safefs.Reason(err),
			"make it readable, or leave it out with .dockerignore")
	}
	for _, child := range children {
		if err := w.visit(path.Join(dir, child.Name()), child, parent); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) visit(name string, d fs.DirEntry, parent verdict) error {
	out, own, err := w.ignore.excludes(name, parent)
	if err != nil {
		return err
	}
	if !out || alwaysSent[name] {
		if err := w.add(name, d); err != nil {
			return err
		}
		w.entries[len(w.entries)-1].hidden = out
	}
	if !d.IsDir() || (out && !w.ignore.MayHoldExceptions(name)) {
		return nil
	}
	before := len(w.entries)
	if err := w.walk(name, own); err != nil {
		return err
	}
	if out && len(w.entries) > before {
		w.entries = slices.Insert(w.entries, before, entry{name: name, mode: fs.ModeDir}) // before the exceptions in it
	}
	return nil
}

func (w *walker) add(name string, d fs.DirEntry) error {
	const leaveOut = "remove it, or leave it out with .dockerignore"
	if !utf8.ValidString(name) {
		return badContext(name, "its name isn't UTF-8", "rename it, or leave it out with .dockerignore")
	}
	e, err := w.entry(name, d)
	if err != nil {
		return badContext(name, "it can't be read: "+safefs.Reason(err),
			"make it readable, or leave it out with .dockerignore")
	}
	if !e.mode.IsRegular() && !e.mode.IsDir() && e.mode&fs.ModeSymlink == 0 {
		return badContext(name, "it is "+kindOf(e.mode)+", which no image can hold", leaveOut)
	}
	w.bytes += e.size
	w.entries = append(w.entries, e)
	if len(w.entries) > maxContextEntries {
		return badContext(".", fmt.Sprintf("it holds more than %d files", maxContextEntries),
			"leave out what the image doesn't need with .dockerignore")
	}
	if w.bytes > maxContextBytes {
		return badContext(".", "it holds more than "+quantity.SizeText(maxContextBytes),
			"leave out what the image doesn't need with .dockerignore")
	}
	return nil
}

// entry describes a file. Hard links are files like all others.
func (w *walker) entry(name string, d fs.DirEntry) (entry, error) {
	info, err := d.Info()
	if err != nil {
		return entry{}, err
	}
	e := entry{name: name, mode: info.Mode()}
	switch {
	case info.Mode().IsRegular():
		e.size = info.Size()
	case info.Mode()&fs.ModeSymlink != 0:
		e.link, err = w.source.root.Readlink(name)
	}
	return e, err
}
