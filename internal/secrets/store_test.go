package secrets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestASecretIsSetListedAndRemoved(t *testing.T) {
	s := Files{Dir: filepath.Join(t.TempDir(), "data", "secrets")}
	if list, err := s.List(); len(list) != 0 || err != nil {
		t.Errorf("without a directory: %v, %v", list, err)
	}
	for _, value := range []string{"first\n", "second"} {
		if err := s.Set("KEY", strings.NewReader(value)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Read("KEY"); string(got) != "second" || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for path, mode := range map[string]os.FileMode{s.Dir: 0o700, filepath.Join(s.Dir, "KEY"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	write(t, filepath.Join(s.Dir, "shown"), "x")
	if err := os.Chmod(filepath.Join(s.Dir, "shown"), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := s.List()
	if err != nil || len(list) != 2 || list[0].Name != "KEY" || list[0].Problem != nil || list[1].Problem == nil {
		t.Errorf("%+v, %v", list, err)
	}
	if err := s.Remove("KEY"); err != nil {
		t.Error(err)
	}
	if err := s.Remove("KEY"); !fault.Is(err, fault.NotFound) {
		t.Errorf("removed again: %v", err)
	}
}

func TestWhatIsNoSecretIsRefused(t *testing.T) {
	s := Files{Dir: t.TempDir()}
	for _, name := range []string{"", ".hidden", "../up", "a/b", "a\x00", "-x"} {
		if err := s.Set(name, strings.NewReader("x")); !fault.Is(err, fault.Input) {
			t.Errorf("Set %q: %v", name, err)
		}
		if err := s.Remove(name); !fault.Is(err, fault.Input) {
			t.Errorf("Remove %q: %v", name, err)
		}
	}
	for what, value := range map[string]string{"nothing": "", "a line end": "\n", "too much": strings.Repeat("x", maxSecret+1)} {
		if err := s.Set("name", strings.NewReader(value)); !fault.Is(err, fault.Input) || strings.Contains(err.Error(), "xx") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if list, err := s.List(); len(list) != 0 || err != nil {
		t.Errorf("left: %v, %v", list, err)
	}
}
