package initbin

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

var (
	content     = []byte("the init program")
	initProgram = embeddedProgram(content)
)

func TestInstall(t *testing.T) {
	t.Run("writes one executable file named by its digest", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "new", "directory")
		path := mustInstall(t, dir)
		if want := fmt.Sprintf("aod-init-%x", sha256.Sum256(content))[:len("aod-init-")+12]; filepath.Base(path) != want {
			t.Errorf("it is called %s, want %s", path, want)
		}
		wantInstalled(t, path)
	})
	t.Run("leaves a good file alone", func(t *testing.T) {
		dir := t.TempDir()
		before, _ := os.Lstat(mustInstall(t, dir))
		after, _ := os.Lstat(mustInstall(t, dir))
		if !os.SameFile(before, after) {
			t.Error("it was written again")
		}
	})
	for name, spoil := range map[string]func(path string) error{
		"replaces one of the same size": func(path string) error {
			return os.WriteFile(path, []byte("THE INIT PROGRAM"), mode)
		},
		"replaces one that is cut": func(path string) error { return os.WriteFile(path, content[:3], mode) },
		"replaces one that can't be executed": func(path string) error {
			return errors.Join(os.WriteFile(path, content, 0o644), os.Chmod(path, 0o644))
		},
		"replaces a link": func(path string) error {
			return errors.Join(os.WriteFile(path+".elsewhere", content, mode), os.Symlink(path+".elsewhere", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := mustInstall(t, t.TempDir())
			if err := errors.Join(os.Remove(path), spoil(path)); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(mustInstall(t, filepath.Dir(path)) + ".elsewhere")
			wantInstalled(t, path)
		})
	}
	t.Run("puts back one that was removed meanwhile", func(t *testing.T) {
		var installer Installer
		path := mustInstallBy(t, &installer, t.TempDir())
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		mustInstallBy(t, &installer, filepath.Dir(path))
		wantInstalled(t, path)
	})
	t.Run("tries again after a failure", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "dir")
		if err := os.WriteFile(dir, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		var installer Installer
		if _, err := installer.install(dir, initProgram); !fault.Is(err, fault.Internal) || fault.Public(err).Hint == "" {
			t.Errorf("got %v", err)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		wantInstalled(t, mustInstallBy(t, &installer, dir))
	})
	t.Run("many at once see whole files only", func(t *testing.T) {
		dir := t.TempDir()
		var all sync.WaitGroup
		for range 32 {
			// An installer of its own each, as in a process of its own.
			all.Go(func() {
				path, err := new(Installer).install(dir, initProgram)
				if err != nil {
					t.Error(err)
				}
				if raw, err := os.ReadFile(path); err != nil || string(raw) != string(content) {
					t.Errorf("read %q, %v", raw, err)
				}
			})
		}
		all.Wait()
		wantInstalled(t, mustInstall(t, dir))
	})
}

// mustInstall installs the program as a new process does.
func mustInstall(t *testing.T, dir string) string {
	t.Helper()
	return mustInstallBy(t, new(Installer), dir)
}

func mustInstallBy(t *testing.T, installer *Installer, dir string) string {
	t.Helper()
	path, err := installer.install(dir, initProgram)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// wantInstalled checks the file, and that nothing else is in its directory.
func wantInstalled(t *testing.T, path string) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != fs.FileMode(0o555) {
		t.Errorf("its mode is %v", info.Mode())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(content), string(raw)); diff != "" {
		t.Error(diff)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}
