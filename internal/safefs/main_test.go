package safefs

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	return string(raw)
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	return info.Mode()
}

// names lists everything below dir.
func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
		if name != "." {
			names = append(names, name)
		}
		return err
	}))
	return names
}

func link(t *testing.T, target, path string) { t.Helper(); must(t, os.Symlink(target, path)) }

func fifo(t *testing.T, path string) { t.Helper(); must(t, syscall.Mkfifo(path, 0o666)) }

// socket leaves a socket at a path that may be longer than an address can be.
func socket(t *testing.T, path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	must(t, os.Rename(filepath.Join(dir, "s"), path))
}

// device makes a character device, which only root can: /dev/tty, which opening would
// show.
func device(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, 5<<8); err != nil {
		t.Skip("no device can be made here: ", err)
	}
}
