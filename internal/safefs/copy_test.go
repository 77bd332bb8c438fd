package safefs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestCopyMakesANewFile(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	dir := t.TempDir()
	write(t, dir+"/from", "0123456789")
	root := openRoot(t, dir)
	in, err := os.Open(dir + "/from")
	must(t, err)
	defer in.Close()
	if n, err := Copy(root, "part", io.LimitReader(in, 4), 0o644); n != 4 || err != nil || read(t, dir+"/part") != "0123" {
		t.Error(n, err)
	}
	if n, err := Copy(root, "rest", in, 0o555); n != 6 || err != nil || read(t, dir+"/rest") != "456789" || mode(t, dir+"/rest") != 0o555 {
		t.Error(n, err, mode(t, dir+"/rest"))
	}
}

func TestCopyTouchesNothingThatIsThere(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/outside/x", "old")
	write(t, dir+"/inside/file", "old")
	link(t, "../outside/x", dir+"/inside/link")
	link(t, "../outside/y", dir+"/inside/dangling")
	link(t, "../outside", dir+"/inside/d")
	fifo(t, dir+"/inside/fifo")
	root := openRoot(t, dir+"/inside")
	for _, name := range []string{"file", "link", "dangling", "fifo"} {
		if _, err := Copy(root, name, strings.NewReader("new"), 0o644); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"d/y", "../outside/y", "a\x00b"} {
		if _, err := Copy(root, name, strings.NewReader("new"), 0o644); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	if read(t, dir+"/outside/x") != "old" || len(names(t, dir+"/outside")) != 1 {
		t.Errorf("outside: %q", names(t, dir+"/outside"))
	}
}

func TestACopyThatFailsSaysSo(t *testing.T) {
	broken := errors.New("broken")
	_, err := Copy(openRoot(t, t.TempDir()), "x", io.MultiReader(strings.NewReader("1"), failing{broken}), 0o644)
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestMkdirAll(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	dir := t.TempDir()
	root := openRoot(t, dir)
	must(t, os.Mkdir(dir+"/a", 0o700))
	for range 2 {
		must(t, MkdirAll(root, "a/b/c", 0o755))
	}
	if mode(t, dir+"/a").Perm() != 0o700 || mode(t, dir+"/a/b").Perm() != 0o755 || mode(t, dir+"/a/b/c").Perm() != 0o755 {
		t.Errorf("%v %v %v", mode(t, dir+"/a"), mode(t, dir+"/a/b"), mode(t, dir+"/a/b/c"))
	}
	write(t, dir+"/file", "x")
	link(t, "..", dir+"/up")
	for _, name := range []string{"file/x", "up/x", "../x"} {
		if err := MkdirAll(root, name, 0o755); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}
