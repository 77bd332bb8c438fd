package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// What a run has of the connection to the engine itself can't outlive that. docs/engines.md says
// what becomes of it.
func TestWhatWasTheConnectionToTheEngineIsToldOrMadeAnew(t *testing.T) {
	t.Parallel()
	onlyLong(t, "AOD_CUTS") // one of each kind
	t.Run("the console of a command goes on, and tells of the gap", func(t *testing.T) {
		t.Parallel()
		line, unit := newEngineLine(t, "unix"), filepath.Join(t.TempDir(), "worker")
		writeWorker(t, unit, "worker", "")
		process := exec.Command("aod", "--data", t.TempDir(), "run", unit, "--input", `{"mark":7,"ticks":20}`)
		process.Dir, process.Env = t.TempDir(), append(os.Environ(), "DOCKER_HOST="+line.host())
		var stdout bytes.Buffer
		stderr := &testkit.Log{}
		process.Stdout, process.Stderr = &stdout, stderr
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "it runs", func() bool { return strings.Contains(stderr.String(), "tick 2") })
		line.cut()
		time.Sleep(300 * time.Millisecond)
		line.join()
		if err := process.Wait(); err != nil {
			t.Errorf("%v\n%s", err, stderr)
		}
		said := stderr.String()
		if !strings.Contains(stdout.String(), `"mark": 7`) && !strings.Contains(stdout.String(), `"mark":7`) || strings.Count(said, "started") != 1 ||
			!strings.Contains(said, "tick 20") || !strings.Contains(said, "may lack lines") {
			t.Errorf("%s\n%s", &stdout, said)
		}
	})
	t.Run("a session ends with the reason", func(t *testing.T) {
		t.Parallel()
		line, s, name := newEngineLine(t, "unix"), newServer(t, "--retries", "3"), uniqueUnit()
		s.env = []string{"DOCKER_HOST=" + line.host()}
		addMCP(t, s.units, name, "")
		s.start()
		session := s.session(name)
		s.speaks("POST", name, session, toolCall(1, "count", "{}"))
		line.cut()
		line.join()
		run := s.sessionRuns(name)[0].ID
		record := s.await(run)
		if e := record.Error; e == nil || e.Kind != "cut_off" || !strings.Contains(e.Message, "connection to the engine broke") || record.Retries != 0 {
			t.Errorf("%s after %d retries: %+v", record.Outcome, record.Retries, e)
		}
		if response, body := s.speaks("POST", name, session, toolCall(2, "count", "{}")); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s %s", response.Status, body)
		}
	})
	t.Run("a build begins again", func(t *testing.T) {
		t.Parallel()
		line, s := newEngineLine(t, "unix"), newServer(t, "--retries", "0")
		s.env = []string{"DOCKER_HOST=" + line.host()}
		s.addWorker("worker", unique()+"RUN sleep 1\n")
		s.start()
		id := s.mustSubmit("worker", work{Ticks: 1})
		testkit.Eventually(t, "the image is being built", func() bool { return s.builds(id) > 0 })
		line.cut()
		time.Sleep(100 * time.Millisecond)
		line.join()
		s.judgeUndisturbed(id, work{})
		s.removeLater(s.await(id).Image.Ref)
	})
	t.Run("handoffs over the line to an engine elsewhere are joined", func(t *testing.T) {
		t.Parallel()
		line, s := newEngineLine(t, "tcp"), newServer(t, "--retries", "0", "--concurrency", "1")
		s.env = []string{"DOCKER_HOST=" + line.host()}
		s.addCaller("link", linkScript) // whose callers ask until they are answered, by a key
		s.start()
		root := s.call("link", `{"n":4,"ticks":2}`)
		testkit.Eventually(t, "a link waits for another one", func() bool { return len(s.chain(root)) > 1 })
		line.cut()
		time.Sleep(300 * time.Millisecond)
		line.join()
		s.judgeChain(root)
	})
}

// builds counts the steps of builds that a run has told of.
func (s *server) builds(id string) (n int) {
	s.t.Helper()
	for event, err := range s.client.Runs.Events(s.t.Context(), id, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if event.Type == (api.BuildEvent{}).EventType() {
			n++
		}
		if n > 2 {
			return n
		}
	}
	return n
}
