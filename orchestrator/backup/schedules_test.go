package backup

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// A backup has the schedules with the files of theirs that are needed.
func TestABackupHasTheFilesOfSchedules(t *testing.T) {
	const needed, left = "01a2044e-1969-7341-b44f-88564b92b4f1", "01a2044e-1969-7341-b44f-88564b92b4f2"
	before := homeOf(t, "01a2044e-1969-7341-b44f-88564b92b4f3", "01a2044e-1969-7341-b44f-88564b92b4f4")
	put(t, "kept", before, layout.Schedules, needed, "0")
	put(t, "left", before, layout.Schedules, left, "0")
	s, err := store.Open(filepath.Join(before, layout.Database), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	row := store.Schedule{Name: "one", Unit: "worker", Spec: []byte(`{}`), Files: needed, Until: now, CreatedAt: now, ChangedAt: now}
	if _, err := s.Schedules.Put(trusted.Context(t), row); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, after := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "server")
	if _, err := Write(trusted.Context(t), before, Target{File: file, Replace: true}, "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(trusted.Context(t), after, file, false); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(filepath.Join(after, layout.Schedules, needed, "0")); string(raw) != "kept" {
		t.Errorf("%q, %v", raw, err)
	}
	if entries, _ := os.ReadDir(filepath.Join(after, layout.Schedules)); len(entries) != 1 {
		t.Errorf("there are %v", entries)
	}
}
