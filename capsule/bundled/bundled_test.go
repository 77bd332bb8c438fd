package bundled

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
)

func TestTheUnitsAreWrittenOnceHoweverManyAsk(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "data", "bundled")
	var all sync.WaitGroup
	dirs := make([]string, 8)
	for n := range dirs {
		all.Go(func() {
			var err error
			if dirs[n], err = Dir(parent, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 1 || dirs[0] != dirs[7] {
		t.Errorf("%v %v %v", entries, dirs, err)
	}
	c, err := capsule.Load(filepath.Join(dirs[0], Code))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Tools) > 0 || len(c.Warnings) > 0 || api.CheckNotReserved(c.Name) == nil {
		t.Errorf("%s may call %v; %v", c.Name, c.Tools, c.Warnings)
	}
}

func TestPackagesAreInstalledInAnImageOfItsOwn(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	plain, err := Dir(parent, nil)
	if err != nil {
		t.Fatal(err)
	}
	with, err := Dir(parent, []string{"python3-numpy", "python3-pil"})
	if err != nil || with == plain {
		t.Fatalf("%s %s %v", with, plain, err)
	}
	raw, err := os.ReadFile(filepath.Join(with, Code, "Dockerfile"))
	if err != nil || !strings.Contains(string(raw), "install -qq --no-install-recommends python3-numpy python3-pil >") {
		t.Errorf("%s %v", raw, err)
	}
	if _, err := capsule.Load(filepath.Join(with, Code)); err != nil {
		t.Error(err)
	}
	for _, hostile := range []string{"", "a b", "a;b", "-o=x", "A", "a\nRUN x", "$(x)", "../x"} {
		if CheckPackage(hostile) == nil {
			t.Errorf("%q is a package", hostile)
		}
	}
}

func TestWhatCantBeWrittenIsToldWithItsPlace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Dir(file, nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
}
