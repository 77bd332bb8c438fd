package registry

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	testsDir  = "tests"
	maxTests  = 100_000   // files and directories
	smallFile = 256 << 10 // enough for a file that a person writes
)

var (
	ignoreFiles = []string{"Dockerfile.dockerignore", ".dockerignore"}
	// definitions are the files that define a capsule. A version has them even if
	// .dockerignore keeps them out of the image.
	definitions = append([]string{
		"agent.yaml", "tools.yaml", "schema.json", "Dockerfile", "run.py", "src/main.py",
		testsDir,
	}, ignoreFiles...)
)

// content is the part of a directory that a version holds: everything that goes into the
// image, and the files that define the capsule besides.
type content struct {
	// digest is the build context's digest if there are no other files, else a digest of
	// both. So an edited contract makes a new version even if no image holds it.
	digest string

	dir     string
	context *capsule.Context
	beside  []string // relative; a directory comes before its entries
	sum     [sha256.Size]byte
}

// contentOf finds the files of a capsule that belong to a version. The error is a Capsule
// fault for files that can't be sent to a builder.
func contentOf(c *capsule.Capsule) (*content, error) {
	context, err := c.Context()
	if err != nil {
		return nil, err
	}
	f := &content{dir: c.Dir, context: context, digest: context.Digest}
	if f.beside, err = besides(c.Dir, context); err != nil {
		return nil, err
	}
	if len(f.beside) == 0 {
		return f, nil
	}
	sum := sha256.New()
	if err := f.writeBeside(sum); err != nil {
		return nil, err
	}
	sum.Sum(f.sum[:0])
	both := sha256.Sum256(append([]byte(context.Digest), f.sum[:]...))
	f.digest = hex.EncodeToString(both[:])
	return f, nil
}

// names lists everything, relative to the directory.
func (f *content) names() []string {
	names := f.context.Files()
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, "/")
	}
	return append(names, f.beside...)
}

// besides lists the files that define a capsule and aren't in its build context.
func besides(dir string, context *capsule.Context) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, moved(err)
	}
	defer root.Close()
	sent := map[string]bool{}
	for _, name := range context.Files() {
		sent[strings.TrimSuffix(name, "/")] = true
	}
	var names []string
	for _, name := range definitions {
		if name != testsDir && !sent[name] && isRegular(root, name) {
			names = append(names, name)
		}
	}
	tests, err := testFiles(root, sent)
	return append(names, tests...), err
}

// testFiles lists the files and directories of tests/ that aren't sent. Links are left out:
// no test case may use one.
func testFiles(root *os.Root, sent map[string]bool) ([]string, error) {
	var names []string
	if info, err := root.Lstat(testsDir); err != nil || !info.IsDir() {
		return nil, nil //nolint:nilerr // without tests there is nothing to keep
	}
	err := fs.WalkDir(root.FS(), testsDir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return unreadable(name, err)
		case len(names) == maxTests:
			return fault.New(fault.Capsule, "%s holds more than %d files", testsDir, maxTests).WithHint("keep fewer")
		case !sent[name] && (d.IsDir() || d.Type().IsRegular()):
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// isRegular reports whether there is a regular file of this name, reached without links.
func isRegular(root *os.Root, name string) bool {
	if parent := path.Dir(name); parent != "." {
		if info, err := root.Lstat(parent); err != nil || !info.IsDir() {
			return false
		}
	}
	info, err := root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// writeBeside writes the files outside the build context as a tar stream: the same bytes
// for the same content.
func (f *content) writeBeside(w io.Writer) error {
	err := f.writeBesideOpen(w)
	if err != nil {
		return err
	}
	return tar.NewWriter(w).Close()
}

// writeBesideOpen is writeBeside without the end of the stream.
func (f *content) writeBesideOpen(w io.Writer) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return moved(err)
	}
	defer root.Close()
	t := tar.NewWriter(w)
	for _, name := range f.beside {
		if err := writeFile(t, root, name); err != nil {
			return err
		}
	}
	return t.Flush()
}

func writeFile(t *tar.Writer, root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return moved(err)
	}
	if info.IsDir() {
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	}
	file, _, err := safefs.OpenRegular(root, name)
	if err != nil {
		return unreadable(name, err)
	}
	defer file.Close()
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644}
	if info.Mode()&0o111 != 0 {
		h.Mode = 0o755
	}
	if err := t.WriteHeader(h); err != nil {
		return unreadable(name, err)
	}
	if _, err := io.CopyN(t, file, h.Size); err != nil {
		return moved(err)
	}
	return nil
}

// writeBesideAgain is writeBeside for a copy. It fails if the content has changed since it
// was read.
func (f *content) writeBesideAgain(w io.Writer) error {
	sum := sha256.New()
	if err := f.writeBeside(io.MultiWriter(w, sum)); err != nil {
		return err
	}
	if !slices.Equal(sum.Sum(nil), f.sum[:]) {
		return moved(errors.New("other content"))
	}
	return nil
}

// moved is the fault for a directory that changed while it was read.
func moved(err error) *fault.Error {
	return fault.Wrap(fault.Capsule, err, "the capsule changed while it was read").
		WithHint("try again when nothing writes into its directory")
}

func unreadable(name string, err error) *fault.Error {
	f := fault.Finding{File: name, Message: "it can't be read", Hint: "make it readable"}
	return fault.Wrap(fault.Capsule, err, "%s can't be read", fault.Quote(name)).WithHint("make it readable").
		WithFindings([]fault.Finding{f})
}
