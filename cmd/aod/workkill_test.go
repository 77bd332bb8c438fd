package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/runtime"
)

// A worker and its server are killed amid runs, on a real engine: nothing is lost, begun again, or left.
func TestAKilledWorkerLosesNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "aod.yaml")
	write(t, "local_sandboxes: false\nworker_grace: 1m\n", file)
	s := newServer(t, "--config", file)
	s.addWorker("survivor", unique())
	s.start()
	w := newFarProcess(t, s)
	w.start()
	first := s.mustSubmit("survivor", work{Mark: 1}) // its image is built by then
	s.images = append(s.images, s.await(first).Image.Ref)
	var ids []string
	for mark := range 4 {
		ids = append(ids, s.mustSubmit("survivor", work{Mark: mark, Ticks: 25}))
	}
	for _, id := range ids {
		s.awaitLine(id, "tick 5")
	}
	w.kill()
	s.awaitLine(ids[0], "tick 5")
	w.start()
	s.awaitLine(ids[0], "tick 12")
	s.kill()
	s.start()
	for _, id := range ids {
		r := s.await(id)
		starts, err := s.startsOf(id)
		if r.Outcome != api.Success || r.Worker != "far" || starts != 1 || err != nil {
			t.Errorf("%s at %q, begun %d times, %v, %+v", r.Outcome, r.Worker, starts, err, r.Error)
		}
	}
	w.empty()
}

// farProcess is `aod work` as a process of its own.
type farProcess struct {
	t       *testing.T
	server  *server
	data    string
	process *exec.Cmd
}

func newFarProcess(t *testing.T, s *server) *farProcess {
	t.Helper()
	w := &farProcess{t: t, server: s, data: t.TempDir()}
	join, err := s.client.Workers.Add(t.Context(), "far")
	if err != nil {
		t.Fatal(err)
	}
	join.Server = s.url()
	write(t, string(servicetest.JSON(join)), w.data, "join")
	t.Cleanup(w.clear)
	return w
}

// start starts the process, and waits until it is there.
func (w *farProcess) start() {
	w.t.Helper()
	log, err := os.OpenFile(filepath.Join(w.data, "work.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	w.process = exec.Command(w.server.program, "work", "--data", w.data, "--join", filepath.Join(w.data, "join"),
		"--concurrency", "4", "--memory", "8GiB")
	w.process.Stdout, w.process.Stderr = log, log
	if err := w.process.Start(); err != nil {
		w.t.Fatal(err)
	}
	before := w.connects()
	testkit.Eventually(w.t, "the worker is there", func() bool { return w.connects() > before })
}

// connects is how often it has connected.
func (w *farProcess) connects() int {
	raw, _ := os.ReadFile(filepath.Join(w.data, "work.log"))
	return strings.Count(string(raw), "msg=connected")
}

func (w *farProcess) kill() {
	_ = w.process.Process.Kill() // it may have ended
	_ = w.process.Wait()         // it was killed
}

// containers are those of the worker.
func (w *farProcess) containers() []runtime.ContainerRef {
	owner, err := os.ReadFile(filepath.Join(w.data, "worker", "owner"))
	if err != nil {
		return nil
	}
	refs, err := w.server.engine.ContainersByLabel(context.Background(), map[string]string{runtime.LabelOwner: string(owner)})
	if err != nil {
		w.t.Error(err)
	}
	return refs
}

// empty waits until nothing of a run is left at the worker but what waits for the next one.
func (w *farProcess) empty() {
	w.t.Helper()
	testkit.Eventually(w.t, "no run is left at the worker", func() bool {
		leases, _ := filepath.Glob(filepath.Join(w.data, "worker", "leases", "*"))
		runs, _ := filepath.Glob(filepath.Join(w.data, "worker", "runs", "*"))
		return len(leases)+len(runs) == 0
	})
}

// clear removes the worker, and what a failed test has left.
func (w *farProcess) clear() {
	if w.process == nil {
		return
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.process.Wait() }()
	if err := w.server.client.Workers.Remove(context.Background(), "far"); err != nil {
		w.kill()
	}
	select {
	case <-ended:
	case <-time.After(testkit.Patience):
		w.t.Error("a worker that was removed doesn't end")
		_ = w.process.Process.Kill() // it may have ended
	}
	for _, ref := range w.containers() {
		w.t.Errorf("container %s is left", ref.ID)
		_ = w.server.engine.Remove(context.Background(), ref.ID)
	}
}

// A client at the server talks with an MCP server at a worker. The session ends with its client, its program and the
// server, and nothing of it is left.
func TestAnMCPServerIsTalkedWithAtAWorker(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "aod.yaml")
	write(t, "local_sandboxes: false\nworker_grace: 1m\n", file)
	s := newServer(t, "--config", file)
	name := uniqueUnit()
	addMCP(t, s.units, name, "")
	s.start()
	w := newFarProcess(t, s)
	w.start()
	ids := s.sessions(name, 4)
	for _, id := range ids {
		if _, body := s.speaks("POST", name, id, toolCall(1, "echo", `{"text":"good day"}`)); !strings.Contains(body, "good day") {
			t.Errorf("it answers %s", body)
		}
	}
	s.speaks("DELETE", name, ids[0], "")
	s.speaks("POST", name, ids[1], toolCall(2, "killed", "{}"))
	testkit.Eventually(t, "two sessions are over", func() bool { return sessionContainers(t, s.engine, name) == 2 })
	outcomes := map[api.Outcome]int{}
	testkit.Eventually(t, "their runs are over", func() bool {
		clear(outcomes)
		for _, r := range s.sessionRuns(name) {
			outcomes[r.Outcome]++
		}
		return outcomes[api.Success] == 1 && outcomes[api.CapsuleError] == 1
	})
	cutOff := func() (n int) {
		for _, r := range s.sessionRuns(name) {
			if r.Error != nil && r.Error.Kind == "cut_off" {
				n++
			}
		}
		return n
	}
	s.kill()
	s.start()
	testkit.Eventually(t, "the server's sessions are over", func() bool { return cutOff() == 2 })
	s.session(name)
	w.kill()
	w.start()
	testkit.Eventually(t, "the worker's session is over", func() bool { return cutOff() == 3 })
	w.empty()
	testkit.Eventually(t, "nothing is left", func() bool { return sessionContainers(t, s.engine, name) == 0 })
}
