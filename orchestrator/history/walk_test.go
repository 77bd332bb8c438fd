package history

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

func TestFilesOfAStateAreSaved(t *testing.T) {
	home, out := t.TempDir(), filepath.Join(t.TempDir(), "state")
	id := kept(t, home, 1, 1)[0]
	h := New(home, 1)
	write(t, filepath.Join(h.StateDir(id), "abc"), "hello")
	file := api.File{Name: "draft/text.txt", SizeBytes: 5, SHA256: "abc"}
	for range 2 { // the second time it is there already
		saved, err := h.SaveState(id, []api.File{file}, out)
		if err != nil || len(saved) != 1 || saved[0].Path != filepath.Join(out, "draft", "text.txt") {
			t.Fatalf("%+v, %v", saved, err)
		}
		if raw, err := os.ReadFile(saved[0].Path); err != nil || string(raw) != "hello" {
			t.Errorf("%q, %v", raw, err)
		}
	}
	for _, bad := range []api.File{{Name: "../text.txt", SHA256: "abc"}, {Name: "gone.txt", SHA256: "def"}} {
		if saved, err := h.SaveState(id, []api.File{bad}, out); err == nil {
			t.Errorf("%s is saved as %+v", bad.Name, saved)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) != 1 {
		t.Errorf("beside the directory: %v, %v", entries, err)
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) != 1 {
		t.Errorf("more than the file: %v, %v", entries, err)
	}
}
