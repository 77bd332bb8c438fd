package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// kept adds runs to the history of a home, and returns their ids.
func kept(t *testing.T, home string, most, runs int) []string {
	t.Helper()
	var ids []string
	for range runs {
		id, err := run.NewID()
		if err != nil {
			t.Fatal(err)
		}
		if err := New(home, most).Add(Past{Record: api.Record{ID: id}}, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestHalfAKeptRunIsNeverShown(t *testing.T) {
	home := t.TempDir()
	ids := kept(t, home, 3, 1)
	h := New(home, 3)
	old, fresh := filepath.Join(h.dir, safefs.TempName()), filepath.Join(h.dir, safefs.TempName())
	for _, dir := range []string{old, fresh} {
		write(t, filepath.Join(dir, pastName), `{"record":{"id":"half"}}`)
	}
	long := time.Now().Add(-2 * abandonedAge)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	if all := h.List(); len(all) != 1 || all[0].Record.ID != ids[0] {
		t.Errorf("listed %+v", all)
	}
	kept(t, home, 3, 1)
	if exists(old) || !exists(fresh) {
		t.Error("of unfinished runs, those of the dead go and no others")
	}
}

func TestWhatAHistoryKeepsOfFiles(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int64 // that the record tells of
		kept  bool
	}{{"small ones are copied", 1, true}, {"large ones are left out", maxFileBytes + 1, false}} {
		t.Run(c.name, func(t *testing.T) {
			home, runDir, out := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "o")
			id, err := run.NewID()
			if err != nil {
				t.Fatal(err)
			}
			write(t, out, "x")
			write(t, filepath.Join(runDir, "input", "d", "i"), "in")
			h := New(home, 1)
			record := api.Record{ID: id, Files: []api.File{{Name: "d/o", Path: out, SizeBytes: c.bytes}}}
			if err := h.Add(Past{Record: record}, runDir); err != nil {
				t.Fatal(err)
			}
			past, err := h.Get(id)
			if err != nil || past.NoFiles == c.kept || len(past.Record.Files) != 1 {
				t.Errorf("%+v, %v", past, err)
			}
			if files, err := h.Inputs(id); err != nil || (len(files) == 1 && files[0].Name == "d/i") != c.kept {
				t.Errorf("inputs %+v, %v", files, err)
			}
			if exists(h.inputDir(id), "d", "i") != c.kept || (past.Record.Files[0].Path != out) != c.kept || !exists(past.Record.Files[0].Path) {
				t.Errorf("%+v", past.Record.Files)
			}
		})
	}
}

func TestAHistoryIsBoundedInBytes(t *testing.T) {
	home := t.TempDir()
	ids := kept(t, home, 5, 2)
	h := New(home, 5)
	large := filepath.Join(h.dir, ids[0], "output")
	write(t, large, "")
	if err := os.Truncate(large, maxBytes+1); err != nil { // sparse
		t.Fatal(err)
	}
	if err := h.prune(); err != nil {
		t.Fatal(err)
	}
	if all := h.List(); len(all) != 1 || all[0].Record.ID != ids[1] {
		t.Errorf("left %+v", all)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(parts ...string) bool {
	_, err := os.Lstat(filepath.Join(parts...))
	return err == nil
}

func TestWhatAHistoryKeepsOfAFlow(t *testing.T) {
	home, runDir := t.TempDir(), t.TempDir()
	h := New(home, 5)
	add := func(walk *Walk) string {
		t.Helper()
		id, err := run.NewID()
		if err == nil {
			err = h.Add(Past{Record: api.Record{ID: id}, Walk: walk}, runDir)
		}
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	write(t, filepath.Join(runDir, "state", "abc"), "bytes")
	steps := []flow.Step{{
		Address: "a", Try: 1, State: flow.Failed, Delta: []byte(`{"x":1}`), Began: time.Now().UTC(),
		Failure: &flow.Failure{Node: "a", Kind: "expression"},
	}}
	id := add(&Walk{Graph: []byte(`{"nodes":{}}`), Steps: steps})
	walk, err := h.Walk(id)
	if err != nil || string(walk.Graph) != `{"nodes":{}}` || cmp.Diff(steps, walk.Steps) != "" {
		t.Errorf("%+v %v", walk, err)
	}
	if !exists(filepath.Join(h.StateDir(id), "abc")) {
		t.Error("the files in its state are gone")
	}
	write(t, filepath.Join(runDir, "state", "abc"), "bytes")
	if err := os.Truncate(filepath.Join(runDir, "state", "abc"), maxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	large := add(&Walk{Steps: steps})
	if exists(h.StateDir(large)) {
		t.Error("a large state is kept")
	}
	for id, says := range map[string]string{large: "too large to be kept", add(nil): "isn't a run of a flow"} {
		if _, err := h.Walk(id); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
	if _, err := h.Walk("none"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}
