package orchestrator

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

func openTestDir(t *testing.T) *dataDir {
	t.Helper()
	d, err := openDataDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func orphansOf(t *testing.T, d *dataDir) []string {
	t.Helper()
	orphans, err := d.orphans()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, o := range orphans {
		ids = append(ids, filepath.Base(o.path))
		if err := o.release(); err != nil {
			t.Error(err)
		}
	}
	return ids
}

func TestARunIsAnOrphanOnlyWithoutItsLock(t *testing.T) {
	t.Parallel()
	d := openTestDir(t)
	dir, err := d.make("one")
	if err != nil {
		t.Fatal(err)
	}
	if ids := orphansOf(t, d); len(ids) > 0 {
		t.Errorf("orphans %q while the lock is held", ids)
	}
	if err := dir.release(); err != nil {
		t.Fatal(err)
	}
	if ids := orphansOf(t, d); len(ids) != 1 || ids[0] != "one" {
		t.Errorf("orphans %q", ids)
	}
	if err := dir.remove(); err != nil {
		t.Fatal(err)
	}
	if ids := orphansOf(t, d); len(ids) > 0 {
		t.Errorf("orphans %q after the removal", ids)
	}
}

func TestANewbornIsNoOrphanYet(t *testing.T) {
	t.Parallel()
	d := openTestDir(t)
	newborn := filepath.Join(d.runs(), safefs.TempPrefix+"one")
	write(t, filepath.Join(newborn, layout.Lock), "")
	if ids := orphansOf(t, d); len(ids) > 0 {
		t.Errorf("orphans %q", ids)
	}
	old := time.Now().Add(-2 * tempAge)
	if err := os.Chtimes(newborn, old, old); err != nil {
		t.Fatal(err)
	}
	if ids := orphansOf(t, d); len(ids) != 1 || ids[0] != safefs.TempPrefix+"one" {
		t.Errorf("orphans %q", ids)
	}
}

func TestARemovalThatWasCutOffIsFinished(t *testing.T) {
	t.Parallel()
	d := openTestDir(t)
	if err := os.Mkdir(filepath.Join(d.runs(), "one"), 0o700); err != nil {
		t.Fatal(err)
	}
	if ids := orphansOf(t, d); len(ids) > 0 {
		t.Errorf("orphans %q", ids)
	}
	if _, err := os.Stat(filepath.Join(d.runs(), "one")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty directory is still there: %v", err)
	}
}
