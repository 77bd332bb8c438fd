package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/runtime"
)

// A program's own secrets go to the workers that may have them, and are nowhere but there, in memory.
func TestSecretsOfAProgramAtAWorker(t *testing.T) {
	const value = "s3cret-of-the-database"
	f := fleetOf(t, "1m", "policy: {secrets: [database]}", "worker: {trusted: {secrets: [database]}}")
	f.addJob("secretive", "secrets: {PASSWORD: database}\n")
	if err := os.MkdirAll(filepath.Join(f.data, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.data, "secrets", "database"), []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	f.start()
	f.worker("other", 4)
	id := f.jobOf("secretive", jobOrders{Mark: "a", Env: "PASSWORD", Hold: true, Calls: []string{"b"}})
	record, err := f.client.Runs.Get(t.Context(), id)
	if err != nil || record.Waiting == nil || record.Waiting.Reason != "machine" {
		t.Errorf("it waits for %+v, %v", record.Waiting, err)
	}
	w := f.worker("trusted", 1)
	f.awaitBegun("a")
	w.leave()
	w.begin()
	w.ready()
	for _, dir := range []string{w.data, filepath.Join(f.data, "server")} {
		for _, name := range filesWith(t, dir, value) {
			t.Errorf("the secret is in %s", name)
		}
	}
	f.letGo("a")
	f.succeeded(id)
	if log := f.logOf(id); !strings.Contains(log, "it is ") || strings.Contains(log, value) {
		t.Errorf("the log is %q", log)
	}
	if r := f.await(id); r.Worker != "trusted" {
		t.Errorf("it was at %q", r.Worker)
	}
}

// filesWith returns the files below a directory in which a text is.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // it is gone meanwhile
		}
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(text)) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A wrapped agent works at a worker, too, also on a project: what it has made of that comes back.
func TestAnAgentAtAWorkerWorksOnAProject(t *testing.T) {
	f := fleetOf(t, "1m")
	f.runs("editor", editInside)
	write(t, "FROM aod/base\n", f.units, "editor", "Dockerfile")
	write(t, "name: editor\nkind: agent\naccess: read-write\nagent:\n  dir: /workspace/project\n  command: [python3, -u, /edit.py, \"{message}\"]\n"+
		"  input: args\n  result: {format: json, text: /text}\n", f.units, "editor", "agent.yaml")
	f.start()
	w := f.worker("big", 1)
	dir := linkedProject(t)
	project, err := workspace.Scan(t.Context(), dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var cuts atomic.Int32
	w.road.mu.Lock()
	w.road.cut = func(path string, b []byte) int {
		if strings.HasSuffix(path, "/"+wire.Project) && cuts.Add(1) == 1 {
			return len(b) / 2
		}
		return -1
	}
	w.road.mu.Unlock()
	record, err := f.submit(t.Context(), client.Submission{Unit: "editor", Input: []byte(`{"message": "append a.txt new.txt"}`), Project: project.WriteTar})
	if err != nil {
		t.Fatal(err)
	}
	r := f.await(record.ID)
	if r.Outcome != api.Success || r.Worker != "big" || r.Changes == nil || r.Changes.Files != 2 || cuts.Load() < 2 {
		t.Fatalf("%s at %q, %+v, changes %+v", r.Outcome, r.Worker, r.Error, r.Changes)
	}
	contains(t, string(r.Output), "/workspace/project; a.txt link new.txt sub/b.txt; ")
	contains(t, f.aod("diff", r.ID), "M a.txt 9 B\n", "A new.txt 5 B\n")
	contains(t, f.aod("diff", r.ID, "--patch"), "+more")
}

// A run may take the memory that a worker has and the server hasn't.
func TestARunIsLargerThanTheServer(t *testing.T) {
	f := fleetOf(t, "1m", "memory: 1GiB")
	for name, memory := range map[string]string{"large": "2GiB", "larger": "3TiB"} {
		f.addJob(name, "")
		write(t, "name: "+name+"\nlimits: {memory: "+memory+"}\n", f.units, name, "agent.yaml")
	}
	f.start()
	f.worker("big", 1)
	f.succeeded(f.jobOf("large", jobOrders{Mark: "a"}))
	_, err := f.submit(t.Context(), client.Submission{Unit: "larger", Input: servicetest.JSON(jobOrders{Mark: "b"})})
	if !fault.Is(err, fault.Forbidden) {
		t.Errorf("3 TiB: %v", err)
	}
}

// Images of units that the server doesn't have any more go.
func TestAWorkerRemovesImagesThatNobodyNeeds(t *testing.T) {
	f := fleetOf(t, "1m")
	f.addJob("passing", "")
	f.start()
	w := f.worker("big", 1)
	f.succeeded(f.job(jobOrders{Mark: "a"}), f.jobOf("passing", jobOrders{Mark: "b"}))
	w.awaitEmpty()
	w.leave()
	if err := os.RemoveAll(filepath.Join(f.units, "passing")); err != nil {
		t.Fatal(err)
	}
	has := func(unit string) bool {
		images, err := w.engine.ImagesByLabel(t.Context(), map[string]string{runtime.LabelUnit: unit})
		stored, _ := filepath.Glob(filepath.Join(w.data, "worker", "units", unit, "*"))
		return err != nil || len(images)+len(stored) > 0
	}
	if !has("job") || !has("passing") {
		t.Fatal("it has no image of a unit that it has run")
	}
	w.begin()
	testkit.Eventually(t, "the image is removed", func() bool { return !has("passing") })
	if !has("job") {
		t.Error("the image of a unit that is there was removed")
	}
}
