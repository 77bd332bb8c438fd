package workers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/workspace"
)

// A worker may lie: what it says of a project's changes is held against what it sent.
func TestChangesAreWhatTheySay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lie  func(dir string) error
		want string
	}{
		"as they were made": {func(string) error { return nil }, ""},
		"another content": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, workspace.ContentsName, "new"), []byte("other"), 0o600)
		}, "hasn't the content"},
		"no content":           {func(dir string) error { return os.Remove(filepath.Join(dir, workspace.ContentsName, "new")) }, "missing, or is none"},
		"a link for a content": {linked, "missing, or is none"},
		"a way out": {func(dir string) error {
			return replaced(filepath.Join(dir, workspace.ChangesName), `"path":"new"`, `"path":"../new"`)
		}, "a change is refused"},
		"no list":      {func(dir string) error { return os.Remove(filepath.Join(dir, workspace.ChangesName)) }, "missing, or is none"},
		"half a list":  {func(dir string) error { return os.Truncate(filepath.Join(dir, workspace.ChangesName), 20) }, "can't be read"},
		"nothing sent": {os.RemoveAll, "haven't come"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := changesOf(t)
			if err := c.lie(dir); err != nil {
				t.Fatal(err)
			}
			found, err := readChanges(dir)
			if c.want == "" && (err != nil || len(found.Changes) != 2) {
				t.Errorf("%+v, %v", found, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v", err)
			}
		})
	}
}

func linked(dir string) error {
	at := filepath.Join(dir, workspace.ContentsName, "new")
	if err := os.Remove(at); err != nil {
		return err
	}
	return os.Symlink("/etc/passwd", at)
}

func replaced(file, old, now string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.Replace(string(raw), old, now, 1)), 0o600)
}

// changesOf returns a directory of changes: a file is new, and one is gone.
func changesOf(t *testing.T) string {
	t.Helper()
	base, now, dest := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "changes")
	for file, text := range map[string]string{
		filepath.Join(base, "gone"): "gone", filepath.Join(base, "stays"): "stays",
		filepath.Join(now, "stays"): "stays", filepath.Join(now, "new"): "new",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := workspace.Stored(base)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := stored.Store(t.TempDir(), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.Compare(t.Context(), workspace.Base{Dir: base, Manifest: manifest}, now, dest, workspace.CompareOptions{}); err != nil {
		t.Fatal(err)
	}
	return dest
}
