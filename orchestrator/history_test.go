package orchestrator

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/history"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
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
		req.History, req.Source.Dir = history.New(home, most), "/units/u"
		ended, err := l.Run(trusted.Context(t), req)
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
	t.Parallel()
	home := t.TempDir()
	ids := remembered(t, home, 3, 5)
	h := history.New(home, 3)
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
	for entry, err := range h.Log(ids[4], api.LogFilter{}) {
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
	if info, err := os.Stat(filepath.Join(home, "history")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory is %v, %v", info.Mode(), err)
	}
}

func TestNoRunIsKeptWhereNoneIsWanted(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	remembered(t, home, 3, 2)
	remembered(t, home, 0, 1)
	if left := history.New(home, 0).List(); len(left) > 0 {
		t.Errorf("kept %+v", left)
	}
}

func TestCommandsThatEndAtOnceKeepTheirRuns(t *testing.T) {
	t.Parallel()
	const commands, most = 8, 3
	home := t.TempDir()
	var all sync.WaitGroup
	for range commands {
		all.Go(func() { remembered(t, home, most, 2) })
	}
	all.Wait()
	h := history.New(home, most)
	if kept := h.List(); len(kept) != most {
		t.Errorf("%d are kept", len(kept))
	}
	if exists(filepath.Join(home, "history"), safefs.TempPrefix+"*") {
		t.Error("unfinished ones are left")
	}
}
