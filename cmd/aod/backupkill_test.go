package main

import (
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestAKilledBackupLeavesNothingThatRestores(t *testing.T) {
	t.Parallel()
	kills := long(t, "AOD_KILLS")
	b := &killedBackup{server: newServer(t), dice: dice(t), dir: t.TempDir(), left: map[string]int{}}
	b.addWorker("worker", "")
	b.start()
	b.fill()
	for round := range kills {
		if round == kills/2 { // from now on there is an older file
			b.mustDo("backup", "--replace", b.file())
		}
		b.killOne()
		b.judgeFiles()
		b.judgeServer(round)
	}
	b.mustDo("backup", "--replace", b.file())
	if left := b.files(); len(left) != 1 {
		t.Errorf("a whole backup leaves %v", left)
	}
	if !b.restores(b.file()) {
		t.Error("the last backup isn't restored")
	}
	t.Logf("%d kills; %d backups were quicker; what lay there then: %v", kills, b.quicker, b.left)
}

// killedBackup is a server whose backups are killed.
type killedBackup struct {
	*server
	dice    *rand.Rand
	dir     string         // in which backups are made
	took    time.Duration  // by a whole one
	quicker int            // whole ones, before they were killed
	left    map[string]int // names of what killed ones left
	records map[string]api.Record
}

func (b *killedBackup) file() string { return filepath.Join(b.dir, "aod.tar.gz") }

// fill has runs made whose files take a while to be written.
func (b *killedBackup) fill() {
	b.t.Helper()
	noise := make([]byte, 8<<20)
	for i := range noise { // nothing that is compressed at once
		noise[i] = byte(b.dice.Uint32())
	}
	doc := filepath.Join(b.t.TempDir(), "doc")
	write(b.t, string(noise), doc)
	for mark := range 2 {
		record, err := b.submit(b.t.Context(), client.Submission{
			Unit: "worker", Input: work{Mark: mark}.input(), Files: []client.InputFile{{Field: "doc", Path: doc}},
		})
		if err != nil {
			b.t.Fatal(err)
		}
		b.await(record.ID)
	}
	began := time.Now()
	b.mustDo("backup", "--replace", b.file())
	b.took = time.Since(began)
	if err := os.Remove(b.file()); err != nil {
		b.t.Fatal(err)
	}
	b.records = b.server.records()
}

// killOne kills a backup at some moment before its end.
func (b *killedBackup) killOne() {
	b.t.Helper()
	testkit.Eventually(b.t, "a backup is killed before its end", func() bool {
		process := exec.Command("aod", "--data", b.data, "backup", "--replace", b.file())
		if err := process.Start(); err != nil {
			b.t.Fatal(err)
		}
		time.Sleep(time.Duration(b.dice.Int64N(int64(b.took))))
		_ = process.Process.Kill() // it may have ended
		switch err := process.Wait(); {
		case process.ProcessState.ExitCode() < 0: // killed
			return true
		case err != nil:
			b.t.Fatalf("a backup that was left alone: %v", err)
		}
		b.quicker++
		return false
	})
}

// judgeFiles finds that what has the name of a backup is one, and that nothing else is restored
// which hasn't all in it.
func (b *killedBackup) judgeFiles() {
	b.t.Helper()
	for _, name := range b.files() {
		short := name[len(b.dir)+1:]
		b.left[short]++
		if restored := b.restores(name); name == b.file() && !restored {
			b.t.Errorf("%s isn't restored", short)
		}
	}
}

// files are those that lie where backups are made.
func (b *killedBackup) files() (names []string) {
	b.t.Helper()
	err := filepath.WalkDir(b.dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return names
}

// restores reports whether a file is a backup, which has to have all runs then. What isn't one
// must leave nothing.
func (b *killedBackup) restores(name string) bool {
	b.t.Helper()
	after := *b.server
	after.data = b.t.TempDir()
	if said, code := after.command("restore", name); code != 0 {
		if left, err := os.ReadDir(after.data); err != nil || len(left) != 0 {
			b.t.Errorf("%s is refused, %s, and leaves %v, %v", name, said, left, err)
		}
		return false
	}
	db := after.openStore()
	defer db.Close()
	for id := range b.records {
		if run, err := db.Runs.Get(b.t.Context(), id); err != nil || !run.Finished {
			b.t.Errorf("%s is restored without run %s: %v", name, id, err)
		}
	}
	return true
}

// judgeServer finds the server well.
func (b *killedBackup) judgeServer(round int) {
	b.t.Helper()
	testkit.Eventually(b.t, "the server is ready", func() bool { return b.status("/readyz") == http.StatusOK })
	for id, before := range b.records {
		now, err := b.client.Runs.Get(b.t.Context(), id)
		if diff := cmp.Diff(before, now); diff != "" || err != nil {
			b.t.Errorf("run %s has changed, %v: %s", id, err, diff)
		}
	}
	if record := b.await(b.mustSubmit("worker", work{Mark: round})); record.Outcome != api.Success {
		b.t.Errorf("a run comes to %s, %+v", record.Outcome, record.Error)
	}
}
