package handoff

import (
	"os"
	"path/filepath"
	"testing"
)

func TestACopyIsPlacedWhereALinkIsNotPossible(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	source := filepath.Join(elsewhere, "x")
	must(t, os.WriteFile(source, []byte("content"), 0o644))
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	must(t, putCopy(root, source, "x"))
	entries, err := os.ReadDir(dir)
	must(t, err)
	if got, err := os.ReadFile(filepath.Join(dir, "x")); err != nil || string(got) != "content" || len(entries) != 1 {
		t.Errorf("%q, %q, %v", got, entries, err)
	}
	if info, _ := root.Stat("x"); info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v", info.Mode())
	}
	link := filepath.Join(elsewhere, "link")
	must(t, os.Symlink(source, link))
	if err := putCopy(root, link, "y"); err == nil {
		t.Error("a link was followed")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
