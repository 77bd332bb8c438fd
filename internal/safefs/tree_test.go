package safefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestRemoveTreeRemovesWhateverIsThere(t *testing.T) {
	cases := []struct {
		name string
		make func(t *testing.T, path string)
	}{
		{"nothing", func(*testing.T, string) {}},
		{"a file", func(t *testing.T, path string) { write(t, path, "x") }},
		{"an empty directory", func(t *testing.T, path string) { write(t, path+"/x", "x") }},
		{"many files and directories", func(t *testing.T, path string) {
			for i := range 600 {
				write(t, fmt.Sprintf("%s/%d/x", path, i), "x")
			}
		}},
		{"links, a FIFO and a socket", func(t *testing.T, path string) {
			write(t, path+"/x", "x")
			link(t, "..", path+"/up")
			fifo(t, path+"/fifo")
			socket(t, path+"/socket")
		}},
		{"names like those that it gives", func(t *testing.T, path string) {
			for range 3 {
				testkit.Tower(t, mkdirs(t, path, "d", "d"), "d", MaxDepth)
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			c.make(t, path)
			if err := RemoveTree(path); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

func mkdirs(t *testing.T, parts ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp(mustMkdir(t, parts[0]), "n")
	if err != nil {
		t.Fatal(err)
	}
	return mustMkdir(t, filepath.Join(append([]string{dir}, parts[1:]...)...))
}

func mustMkdir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRemoveTreeFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/outside/x", "x")
	link(t, "outside", dir+"/link")
	write(t, dir+"/tree/x", "x")
	link(t, "../outside", dir+"/tree/link")
	for _, path := range []string{dir + "/link", dir + "/tree"} {
		if err := RemoveTree(path); err != nil {
			t.Error(err)
		}
	}
	if got := names(t, dir); len(got) != 2 || mode(t, dir+"/outside").Perm() != 0o755 {
		t.Errorf("left: %q", got)
	}
}

func TestRemoveTreeNeedsFewOpenFilesForATower(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tower")
	mustMkdir(t, dir)
	testkit.Tower(t, dir, "d", 2500) // deeper than a path can name
	withOpenFiles(t, 400, func() {
		if err := RemoveTree(dir); err != nil {
			t.Errorf("%.200v", err)
		}
	})
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it is still there")
	}
}

// withOpenFiles runs f where only so many files can be open.
func withOpenFiles(t *testing.T, limit uint64, f func()) {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old) }()
	f()
}

// closing are the permissions that a program can take from us on its own files, which
// are ours as well where we are not root.
var closing = []fs.FileMode{0, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600}

func TestClosedDirectoriesAreRemoved(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	for _, perm := range closing {
		t.Run(perm.String(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tree")
			write(t, dir+"/a/b/x", "x")
			deep := mustMkdir(t, filepath.Join(dir, strings.Repeat("d/", MaxDepth+3)))
			for _, closed := range []string{deep, filepath.Dir(deep), dir + "/a/b", dir + "/a", dir} {
				if err := os.Chmod(closed, perm); err != nil {
					t.Fatal(err)
				}
			}
			if err := RemoveTree(dir); err != nil {
				t.Error(err)
			}
		})
	}
}
