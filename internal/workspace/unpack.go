package workspace

import (
	"archive/tar"
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// Unpack stores a project that comes as a tar stream, maybe a stranger's, in an empty directory
// of ours, and returns what it is. Directories, and what the patterns leave out, are passed
// over. The error is a fault: of the tar, of something in it that can't be part of a project,
// of the stream's own, or of the disk, which is Unavailable. What is stored by then stays.
func Unpack(dir string, r io.Reader, o Options) (Manifest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Manifest{}, notStored(err)
	}
	defer func() { _ = root.Close() }() // holds no data
	patterns, err := safefs.ParsePatterns([]byte(strings.Join(o.Ignore, "\n")))
	if err != nil {
		return Manifest{}, fault.New(fault.Capsule, "workspace.ignore: %s", fault.Clip(err.Error(), fault.MaxQuoted))
	}
	in := &reading{r: r}
	u := unpacker{
		root: root, in: in, tar: tar.NewReader(bufio.NewReaderSize(in, 64<<10)), sum: sha256.New(),
		tally: tally{limits: o.Limits.orDefault()}, ignore: patterns, links: map[string]string{},
	}
	if err := u.all(); err != nil {
		return Manifest{}, err
	}
	slices.SortFunc(u.found.Entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return u.found, nil
}

// Store is WriteTar and Unpack in one.
func (p *Project) Store(dir string, o Options) (Manifest, error) {
	in, out := io.Pipe()
	go func() { _ = out.CloseWithError(p.WriteTar(out)) }() // never fails
	defer func() { _ = in.Close() }()                       // ends the writer
	return Unpack(dir, in, o)
}

type unpacker struct {
	root   *os.Root
	in     *reading
	tar    *tar.Reader
	sum    hash.Hash
	tally  tally
	ignore safefs.Patterns
	seen   int
	made   string            // the directory that was made last
	links  map[string]string // made at the end: until then no name leads through one
	found  Manifest
}

func (u *unpacker) all() error {
	for {
		header, err := u.tar.Next()
		if errors.Is(err, io.EOF) {
			return u.makeLinks()
		}
		if err != nil {
			return u.badTar(err)
		}
		if u.seen++; u.seen > 4*u.tally.limits.Files {
			return fault.New(fault.TooLarge, "the tar of the project has more than %d entries", 4*u.tally.limits.Files).
				WithHint(leaveOut)
		}
		if err := u.entry(header); err != nil {
			return err
		}
	}
}

// badTar is the fault for a stream that ends or isn't a tar: the reader's own, if it has one.
func (u *unpacker) badTar(err error) error {
	if u.in.err != nil {
		err = u.in.err
	}
	if own := (*fault.Error)(nil); errors.As(err, &own) {
		return err
	}
	return fault.Wrap(fault.Input, err, "the project isn't a tar archive that can be read").
		WithHint("is it whole, and not compressed?")
}

func (u *unpacker) entry(h *tar.Header) error {
	if h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name := strings.TrimPrefix(h.Name, "./")
	if why := nameProblem(name); why != "" {
		return refused(name, why)
	}
	if inGit(name) && (!isGitFile(name) || h.Typeflag != tar.TypeReg) || ours(name) {
		return nil
	}
	out, err := leftBy(u.ignore, name)
	if out || err != nil {
		return err
	}
	if err := u.tally.add(h.Size); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return u.file(name, h)
	case tar.TypeSymlink:
		return u.link(name, h.Linkname)
	case tar.TypeLink:
		return refused(name, "is a hard link")
	}
	return refused(name, "is neither a file nor a symbolic link")
}

func (u *unpacker) file(name string, h *tar.Header) error {
	if dir := path.Dir(name); dir != u.made {
		if err := safefs.MkdirAll(u.root, dir, 0o755); err != nil {
			return clashOr(name, err)
		}
		u.made = dir
	}
	mode := modeFile
	if h.Mode&0o100 != 0 {
		mode = modeProgram
	}
	u.sum.Reset()
	in := &reading{r: u.tar}
	size, err := safefs.Copy(u.root, name, io.TeeReader(in, u.sum), permOf(mode))
	if in.err != nil {
		return u.badTar(in.err)
	}
	if err != nil {
		return clashOr(name, err)
	}
	e := Entry{Path: name, Mode: mode, Size: size, SHA256: hex.EncodeToString(u.sum.Sum(nil))}
	if inGit(name) {
		u.found.Git = true
		return u.checkConfig(e)
	}
	u.found.Entries = append(u.found.Entries, e)
	return nil
}

// checkConfig refuses settings of a .git that aren't those that we write.
func (u *unpacker) checkConfig(e Entry) error {
	if e.Path != gitConfig {
		return nil
	}
	for _, config := range gitConfigs {
		if e.SHA256 == digestOf(config) {
			return nil
		}
	}
	return refused(gitConfig, "has settings that don't come along").
		WithHint("send the work tree without .git, or have aod pack it")
}

func (u *unpacker) link(name, target string) error {
	if why := linkProblem(name, target); why != "" {
		return refused(name, why)
	}
	if _, twice := u.links[name]; twice {
		return twiceIn(name)
	}
	u.links[name] = target
	return nil
}

func (u *unpacker) makeLinks() error {
	for name, target := range u.links {
		if err := makeLink(u.root, name, target); err != nil {
			return clashOr(name, err)
		}
		u.found.Entries = append(u.found.Entries,
			Entry{Path: name, Mode: modeLink, Size: int64(len(target)), SHA256: digestOf(target)})
	}
	return nil
}

// makeLink makes a link, whose directory isn't a link and has none above it: Unpack and Clone
// make their files first, then the links, and each directory of a link before the links.
func makeLink(root *os.Root, name, target string) error {
	if err := safefs.MkdirAll(root, path.Dir(name), 0o755); err != nil {
		return err
	}
	dir, base, done, err := above(root, name)
	if err != nil {
		return err
	}
	defer done()
	return dir.Symlink(target, base)
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// leftBy reports whether patterns leave a name out.
func leftBy(patterns safefs.Patterns, name string) (out bool, err error) {
	verdict := safefs.Verdict{}
	for i, r := range name + "/" {
		if r == '/' {
			if out, verdict, err = patterns.Match(name[:i], verdict); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// clashOr is the fault of a file that couldn't be made: two of a tar are in each other's way, or
// the disk is to blame.
func clashOr(name string, err error) error {
	irregular := (*safefs.Irregular)(nil)
	if errors.Is(err, fs.ErrExist) || errors.As(err, &irregular) || isNotDir(err) {
		return twiceIn(name)
	}
	return notStored(err)
}

func twiceIn(name string) error {
	return refused(name, "stands twice in the project, or once as a directory").
		WithHint("give each file a name of its own")
}

func notStored(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the project can't be stored").WithHint("is the disk full?")
}
