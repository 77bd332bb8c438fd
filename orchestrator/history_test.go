package orchestrator

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/safefs"
)

// remembered plays runs with a history in a home, and returns their ids.
func remembered(t *testing.T, home string, most, runs int) []string {
	t.Helper()
	l := playLocal(t, &stage{attempt: func(ctx context.Context, a *actor) (run.Result, error) {
		a.Log(runtime.LogLine{Time: time.Now(), Stream: "stdout", Text: "a line"})
		return a.waits(ctx, opened)
	}}, Options{Home: home})
	var ids []string
	for range runs {
		req := playRequest(t, "u")
		req.History, req.Source.Dir = NewHistory(home, most), "/units/u"
		ended, err := l.Run(t.Context(), req)
		if err != nil || ended.Past != nil {
			t.Fatal(err, ended.Past)
		}
		ids = append(ids, ended.Record.ID)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	return ids
}

var opened = func() chan struct{} {
	gate := make(chan struct{})
	close(gate)
	return gate
}()

func TestTheLastRunsAreKept(t *testing.T) {
	home := t.TempDir()
	ids := remembered(t, home, 3, 5)
	h := NewHistory(home, 3)
	var kept []string
	for _, past := range h.List() {
		kept = append(kept, past.Record.ID)
	}
	if want := ids[4] + " " + ids[3] + " " + ids[2]; strings.Join(kept, " ") != want {
		t.Errorf("kept %v, want %s", kept, want)
	}
	past, err := h.Get(ids[4])
	if err != nil || past.Source.Dir != "/units/u" || past.Record.Outcome != api.Success || string(past.Record.Input) == "" {
		t.Errorf("%+v, %v", past, err)
	}
	lines := 0
	for entry, err := range h.Log(ids[4]) {
		if err != nil || entry.Text != "a line" {
			t.Error(entry, err)
		}
		lines++
	}
	if lines != 1 {
		t.Errorf("%d lines", lines)
	}
	for _, id := range []string{ids[0], "../" + ids[4], "", "x"} {
		if _, err := h.Get(id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if info, err := os.Stat(h.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory is %v, %v", info.Mode(), err)
	}
}

func TestNoRunIsKeptWhereNoneIsWanted(t *testing.T) {
	home := t.TempDir()
	remembered(t, home, 3, 2)
	remembered(t, home, 0, 1)
	if left := NewHistory(home, 0).List(); len(left) > 0 {
		t.Errorf("kept %+v", left)
	}
}

func TestHalfAKeptRunIsNeverShown(t *testing.T) {
	home := t.TempDir()
	ids := remembered(t, home, 3, 1)
	h := NewHistory(home, 3)
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
	remembered(t, home, 3, 1)
	if exists(old) || !exists(fresh) {
		t.Error("of unfinished runs, those of the dead go and no others")
	}
}

func TestCommandsThatEndAtOnceKeepTheirRuns(t *testing.T) {
	const commands, most = 8, 3
	home := t.TempDir()
	var all sync.WaitGroup
	for range commands {
		all.Go(func() { remembered(t, home, most, 2) })
	}
	all.Wait()
	h := NewHistory(home, most)
	if kept := h.List(); len(kept) != most {
		t.Errorf("%d are kept", len(kept))
	}
	if exists(h.dir, safefs.TempPrefix+"*") {
		t.Error("unfinished ones are left")
	}
}

func TestWhatAHistoryKeepsOfFiles(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int64 // that the record tells of
		kept  bool
	}{{"small ones are copied", 1, true}, {"large ones are left out", historyFileBytes + 1, false}} {
		t.Run(c.name, func(t *testing.T) {
			home, runDir, out := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "o")
			id, err := run.NewID()
			if err != nil {
				t.Fatal(err)
			}
			write(t, out, "x")
			write(t, filepath.Join(runDir, "input", "d", "i"), "in")
			h := NewHistory(home, 1)
			record := api.Record{ID: id, Files: []api.File{{Name: "d/o", Path: out, SizeBytes: c.bytes}}}
			if err := h.add(Past{Record: record}, runDir); err != nil {
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
	ids := remembered(t, home, 5, 2)
	h := NewHistory(home, 5)
	large := filepath.Join(h.dir, ids[0], "output")
	write(t, large, "")
	if err := os.Truncate(large, historyBytes+1); err != nil { // sparse
		t.Fatal(err)
	}
	if err := h.prune(); err != nil {
		t.Fatal(err)
	}
	if all := h.List(); len(all) != 1 || all[0].Record.ID != ids[1] {
		t.Errorf("left %+v", all)
	}
}
