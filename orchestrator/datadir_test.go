package orchestrator

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
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
		ids = append(ids, o.id)
		if err := o.dir.release(); err != nil {
			t.Error(err)
		}
	}
	return ids
}

func TestARunIsAnOrphanOnlyWithoutItsLock(t *testing.T) {
	d := openTestDir(t)
	run, err := d.open("one")
	if err != nil {
		t.Fatal(err)
	}
	if ids := orphansOf(t, d); len(ids) > 0 {
		t.Errorf("orphans %q while the lock is held", ids)
	}
	if err := run.release(); err != nil {
		t.Fatal(err)
	}
	if ids := orphansOf(t, d); len(ids) != 1 || ids[0] != "one" {
		t.Errorf("orphans %q", ids)
	}
	if err := run.remove(); err != nil {
		t.Fatal(err)
	}
	if ids := orphansOf(t, d); len(ids) > 0 {
		t.Errorf("orphans %q after the removal", ids)
	}
}

func TestANewbornIsNoOrphanYet(t *testing.T) {
	d := openTestDir(t)
	newborn := filepath.Join(d.runs(), unborn+"one")
	write(t, filepath.Join(newborn, lockName), "")
	if ids := orphansOf(t, d); len(ids) > 0 {
		t.Errorf("orphans %q", ids)
	}
	old := time.Now().Add(-2 * unbornAge)
	if err := os.Chtimes(newborn, old, old); err != nil {
		t.Fatal(err)
	}
	if ids := orphansOf(t, d); len(ids) != 1 || ids[0] != "one" {
		t.Errorf("orphans %q", ids)
	}
}

func TestARemovalThatWasCutOffIsFinished(t *testing.T) {
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

func TestARunThatIsKeptIsNoOrphan(t *testing.T) {
	d := openTestDir(t)
	run, err := d.open("one")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(run.path, "io", "input.json"), "{}")
	kept, err := d.keep(run)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(kept, "io", "input.json")); err != nil {
		t.Error(err)
	}
	if ids := orphansOf(t, d); len(ids) > 0 {
		t.Errorf("orphans %q", ids)
	}
}
