package orchestrator

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

func TestServiceRuns(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	t.Run("a run goes through its states and gives its result", func(t *testing.T) {
		id := w.submit(orders{Mark: "a", File: "sub-a.txt", Lines: 3})
		record := w.await(id)
		if record.Outcome != api.Success || states(record) != "idle starting running completed cleanup idle" || string(record.Output) != `{"file":"sub-a.txt","mark":"a"}` {
			t.Errorf("record %s", show(record))
		}
		keepsSchema(t, record)
		f, file, err := w.service.Files.Open(trusted.Context(t), id, "sub-a.txt")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if raw, _ := io.ReadAll(f); string(raw) != "content of a" || file.SizeBytes != int64(len(raw)) || file.Path != "" {
			t.Errorf("file %q, %+v", raw, file)
		}
		var lines []string
		for entry, err := range w.service.Feed.Log(trusted.Context(t), id, api.LogFilter{Follow: true}) {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, entry.Text)
		}
		if got := strings.Join(lines, ","); got != "line 0,line 1,line 2" {
			t.Errorf("log %q", got)
		}
	})
	t.Run("a run that fails by itself isn't tried again", func(t *testing.T) {
		record := w.await(w.submit(orders{Mark: "b", Exit: 3}))
		if record.Outcome != api.CapsuleError || *record.ExitCode != 3 || record.Retries != 0 || w.starts("b") != 1 {
			t.Errorf("record %s", show(record))
		}
		keepsSchema(t, record)
	})
	t.Run("nothing is kept of a run without files and log", func(t *testing.T) {
		id := w.await(w.submit(orders{Mark: "c"})).ID
		if _, err := os.Stat(w.service.runPath(id)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its directory: %v", err)
		}
	})
	t.Run("an input that breaks the contract is refused with nothing left", func(t *testing.T) {
		_, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker", Input: json.RawMessage(`{"exit":"x"}`)})
		if !fault.Is(err, fault.Input) || len(fault.Public(err).Findings) != 1 {
			t.Errorf("error %v", err)
		}
		if _, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "wurker"}); !fault.Is(err, fault.NotFound) {
			t.Errorf("error %v", err)
		}
	})
}

func TestServiceTakesFilesAndGivesThemAgain(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	files, err := w.service.NewSpool()
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Add("doc", "in.txt", strings.NewReader("hello"), 5); err != nil {
		t.Fatal(err)
	}
	record, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker", Input: encoded(orders{Mark: "a", File: "out.txt"}), Files: files})
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := w.service.Rerun(trusted.Context(t), w.await(record.ID).ID, "", api.Rerun{})
	if err != nil {
		t.Fatal(err)
	}
	record = w.await(again.ID)
	if record.Outcome != api.Success || record.RerunOf == "" || len(record.Files) != 1 || record.Files[0].SizeBytes != 5 || w.starts("a") != 2 {
		t.Errorf("record %s", show(record))
	}
	keepsSchema(t, record)

	if files, err = w.service.NewSpool(); err != nil {
		t.Fatal(err)
	}
	if err := files.Add("doc", "in.txt", strings.NewReader("hello!"), 5); !fault.Is(err, fault.TooLarge) {
		t.Errorf("a file over its limit: %v", err)
	}
	if err := files.Remove(); err != nil {
		t.Error(err)
	}
}

func TestServiceJoinsByKey(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	sub := spool.Submission{Unit: "worker", Input: encoded(orders{Mark: "once"}), Key: "k1"}
	var ids sync.Map
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			record, _, err := w.service.Submit(trusted.Context(t), sub)
			if err != nil {
				t.Error(err)
			}
			ids.Store(record.ID, true)
		})
	}
	all.Wait()
	n := 0
	ids.Range(func(id, _ any) bool {
		n++
		w.await(id.(string))
		return true
	})
	if n != 1 || w.starts("once") != 1 {
		t.Errorf("%d runs were made, and started %d times", n, w.starts("once"))
	}
	sub.Input = encoded(orders{Mark: "another"})
	if _, _, err := w.service.Submit(trusted.Context(t), sub); !fault.Is(err, fault.Input) {
		t.Errorf("another request with the same key: %v", err)
	}
}

func TestServiceRetriesWhatMayPass(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Unavailable, "the engine is away")
	t.Run("until it works", func(t *testing.T) {
		w := newFixture(t)
		w.breaks("Create", passes{away})
		record := w.await(w.submit(orders{Mark: "a"}))
		if record.Outcome != api.Success || record.Retries != 1 || len(record.Attempts) != 1 || w.starts("a") != 1 {
			t.Fatalf("record %s", show(record))
		}
		if e := record.Attempts[0].Error; e == nil || e.Category != api.CategoryTransient {
			t.Errorf("attempts %+v", record.Attempts)
		}
		keepsSchema(t, record)
	})
	t.Run("as often as it may", func(t *testing.T) {
		w := newFixture(t)
		w.breaks("Start", away)
		record := w.await(w.submit(orders{Mark: "a"}))
		if record.Outcome != api.SystemError || record.Retries != 3 || record.Error.Category != api.CategoryTransient {
			t.Errorf("record %s", show(record))
		}
		keepsSchema(t, record)
	})
	t.Run("also what was stopped from outside", func(t *testing.T) {
		w := newFixture(t)
		id := w.submit(orders{Mark: "a", Until: "go"})
		w.until(id, running)
		refs, err := w.engine.ContainersByLabel(trusted.Context(t), map[string]string{runtime.LabelRun: id})
		if err != nil || len(refs) != 1 {
			t.Fatal(refs, err)
		}
		if err := w.engine.Kill(trusted.Context(t), refs[0].ID); err != nil {
			t.Fatal(err)
		}
		w.until(id, func(r api.Record) bool { return len(r.Attempts) == 1 && running(r) })
		w.open("go")
		if record := w.await(id); record.Outcome != api.Success || w.starts("a") != 2 {
			t.Errorf("record %s", show(record))
		}
	})
}

func TestServiceCancels(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(o *settings) { o.Concurrency = 1 })
	runs, waits := w.submit(orders{Mark: "a", Until: "never"}), w.submit(orders{Mark: "b"})
	w.until(runs, running)
	for _, id := range []string{waits, runs} {
		if _, err := w.service.Cancel(trusted.Context(t), id, "not wanted"); err != nil {
			t.Fatal(err)
		}
		record := w.await(id)
		if record.Outcome != api.WasCancelled || record.State != api.Cancelled || !strings.Contains(record.Error.Message, "not wanted") {
			t.Errorf("record %s", show(record))
		}
		keepsSchema(t, record)
		if _, err := w.service.Cancel(trusted.Context(t), id, ""); !fault.Is(err, fault.Conflict) {
			t.Errorf("a second time: %v", err)
		}
	}
	if w.starts("b") != 0 {
		t.Error("the waiting run was started")
	}
}

func TestServiceBoundsItsQueue(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(o *settings) {
		o.Concurrency, o.Queue = 1, 1
		for name, content := range workerFiles {
			write(t, filepath.Join(o.Sources[0], "hurried", name), strings.ReplaceAll(content, "worker", "hurried"))
		}
		o.Units["hurried"] = units.Settings{QueueWait: 50 * time.Millisecond}
	})
	first := w.submit(orders{Mark: "a", Until: "go"})
	w.until(first, running)
	second := w.submit(orders{Mark: "b"})
	if _, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker"}); !fault.Is(err, fault.Busy) {
		t.Errorf("a third: %v", err)
	}
	record := w.await(w.submitTo("hurried", orders{Mark: "c"}))
	if record.Outcome != api.SystemError || record.Error.Kind != api.KindQueueTimeout || w.starts("c") != 0 {
		t.Errorf("record %s", show(record))
	}
	if w.starts("b") != 0 {
		t.Error("the second was started beside the first")
	}
	w.open("go")
	w.await(first)
	if record := w.await(second); record.Outcome != api.Success {
		t.Errorf("record %s", show(record))
	}
}

// withTalks adds a unit that has sessions.
func withTalks(o *settings) {
	dir := filepath.Join(o.Sources[0], "talks")
	write(o.fixture.t, filepath.Join(dir, "Dockerfile"), "FROM "+dockertest.Image+"\n")
	write(o.fixture.t, filepath.Join(dir, "agent.yaml"), "name: talks\nkind: agent\nagent: {command: [talk], mode: interactive, protocol: acp}\nsession: {keep_alive: true}\n")
}

// Whoever removes old runs by hand isn't left with the sessions of which they were turns.
func TestServicePrunesClosedSessions(t *testing.T) {
	t.Parallel()
	w := newFixture(t, withTalks)
	var ids []string
	for range 2 {
		made, err := w.service.Sessions.Create(trusted.Context(t), "talks", nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made.ID)
	}
	if _, err := w.service.Sessions.Close(trusted.Context(t), ids[0], "over"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		opts api.PruneOptions
		gone bool
	}{
		{api.PruneOptions{DryRun: true}, false},
		{api.PruneOptions{MaxBytes: 1}, false},
		{api.PruneOptions{Images: true}, false},
		{api.PruneOptions{OlderThan: time.Hour}, false},
		{api.PruneOptions{}, true},
	} {
		if _, err := w.service.Retention.Prune(trusted.Context(t), c.opts); err != nil {
			t.Fatal(err)
		}
		if _, err := w.service.Sessions.Get(trusted.Context(t), ids[0]); fault.Is(err, fault.NotFound) != c.gone {
			t.Errorf("after %+v: %v", c.opts, err)
		}
	}
	if _, err := w.service.Sessions.Get(trusted.Context(t), ids[1]); err != nil {
		t.Errorf("one that is open: %v", err)
	}
}

func TestServiceRefusesWithoutRoom(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(o *settings) { o.MinFreeDisk = 1 << 60 })
	if _, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker"}); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "disk") {
		t.Errorf("error %v", err)
	}
	if err := w.service.Ready(trusted.Context(t)); err == nil {
		t.Error("it says that it is ready")
	}
}

func TestServiceHoldsItsHome(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	if _, err := w.opts.service(w.engine); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second one over the same home: %v", err)
	}
}

func TestServiceLists(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	var ids []string
	for range 5 {
		ids = append(ids, w.await(w.submit(orders{Mark: "a"})).ID)
	}
	slices.Reverse(ids)
	var got []string
	f := api.Filter{Unit: "worker", States: []api.State{api.Completed}, Limit: 2}
	for {
		page, err := w.service.Runs.List(trusted.Context(t), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Runs {
			got = append(got, r.ID)
		}
		if page.Next == nil {
			break
		}
		f.Cursor = *page.Next
	}
	if !slices.Equal(got, ids) {
		t.Errorf("listed %v, want %v", got, ids)
	}
}

func TestPruneTellsOfClosedSessions(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	now := time.Now()
	for id, closed := range map[string]bool{"open": false, "closed": true} {
		if err := w.service.store.Sessions.Insert(trusted.Context(t), store.Session{ID: id, Unit: "u", Closed: closed, CreatedAt: now, UsedAt: now}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		opts api.PruneOptions
		want int64
	}{
		{api.PruneOptions{OlderThan: time.Hour}, 0}, // it was used since
		{api.PruneOptions{MaxBytes: 1}, 0},          // it takes no bytes
		{api.PruneOptions{DryRun: true}, 1},
		{api.PruneOptions{}, 1},
		{api.PruneOptions{}, 0},
	} {
		if report, err := w.service.Retention.Prune(trusted.Context(t), c.opts); err != nil || report.Sessions != c.want {
			t.Errorf("%+v took %d sessions, not %d: %v", c.opts, report.Sessions, c.want, err)
		}
	}
}

func TestServicePrunes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	var ids []string
	for range 4 {
		ids = append(ids, w.await(w.submit(orders{Mark: "a", File: "f"})).ID)
	}
	going := w.submit(orders{Mark: "b", Until: "go"})
	dry, err := w.service.Retention.Prune(trusted.Context(t), api.PruneOptions{DryRun: true})
	if err != nil || dry.Runs != 4 || dry.Bytes == 0 {
		t.Fatal(dry, err)
	}
	report, err := w.service.Retention.Prune(trusted.Context(t), api.PruneOptions{MaxBytes: dry.Bytes / 2})
	if err != nil || report.Runs != 2 {
		t.Errorf("pruned %+v, %v", report, err)
	}
	if _, err := w.service.Runs.Get(trusted.Context(t), ids[0]); !fault.Is(err, fault.NotFound) {
		t.Errorf("the oldest is still there: %v", err)
	}
	if _, err := os.Stat(w.service.runPath(ids[0])); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its files: %v", err)
	}
	if f, _, err := w.service.Files.Open(trusted.Context(t), ids[3], "f"); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	if report, err := w.service.Retention.Prune(trusted.Context(t), api.PruneOptions{OlderThan: time.Hour}); err != nil || report.Runs != 0 {
		t.Errorf("pruned %+v, %v", report, err)
	}
	w.open("go")
	w.await(going)
}
