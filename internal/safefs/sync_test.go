package safefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestSyncTree(t *testing.T) {
	for _, files := range []int{1, manyEntries + 1} {
		top := t.TempDir()
		dir := filepath.Join(top, "a", "b")
		if err := os.MkdirAll(filepath.Join(dir, "c"), 0o755); err != nil {
			t.Fatal(err)
		}
		for n := range files {
			if err := os.WriteFile(filepath.Join(dir, "c", fmt.Sprint(n)), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		if err := SyncTree(dir, top); err != nil {
			t.Errorf("%d files: %v", files, err)
		}
	}
	if err := SyncTree(filepath.Join(t.TempDir(), "missing"), t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that isn't there: %v", err)
	}
}
