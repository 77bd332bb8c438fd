package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/certs"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

const (
	swarmWorkers = 2 // engines beside the manager's
	swarmEvery   = 200 * time.Millisecond
	swarmLoad    = 20 * time.Second // of each disturbance
)

// swarmProgram takes as long as some runs do, so that many are under way at each moment.
const swarmProgram = "import time\ntime.sleep(1.5)\nopen('/io/output.json', 'w').write('{}')\n"

// Whoever has a Swarm pastes the guide's blocks; and under load no run fails or is begun twice when a node is drained or
// the workers are updated. It is on engines of its own, which want root: `make swarm`.
func TestTheGuideOfASwarmWorksOnRealEngines(t *testing.T) {
	if os.Getenv("AOD_SWARM") == "" {
		t.Skip("it starts engines of its own, as root: make swarm")
	}
	dir, err := os.MkdirTemp("", "aodsw") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { swarmEngines(t, "down", dir) })
	swarmEngines(t, "up", dir, fmt.Sprint(swarmWorkers))
	t.Setenv("DOCKER_HOST", "unix://"+dir+"/node-0.sock")
	t.Setenv("DOCKER_SOCK", dir+"/{{.Node.Hostname}}.sock") // the engines have one file system
	_, blocks := readGuide(t, "swarm.md")
	scripts, shown := stops(blocks)
	last := len(scripts) - 1
	files := map[string]string{
		"nap/Dockerfile": "FROM aod/base\nCOPY run.py /capsule/run.py\n", "nap/run.py": swarmProgram, "nap/agent.yaml": "name: nap\n",
		"nap/schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`, "nap/tools.yaml": "[]\n",
	}
	began := time.Now()
	access := filepath.Join(t.TempDir(), "access") // for what comes after the shell
	script := fmt.Sprintf("aod run ./nap -q\nprintf '%%s\\n' \"$AOD_SERVER\" \"$AOD_PIN\" \"$AOD_TOKEN\" >%s\n", access)
	printed := tour(t, append(scripts[:last:last], script), files)
	for i := range last {
		for _, b := range shown[i] {
			compare(t, scripts[i], b, printed[i])
		}
	}
	t.Logf("the guide took %s", time.Since(began).Round(time.Second))
	raw, err := os.ReadFile(access)
	if err != nil {
		t.Fatal(err)
	}
	s := newSwarmed(t, strings.Fields(string(raw)))
	s.drainsUnderLoad()
	s.updatesUnderLoad()
	s.removes()
	tour(t, scripts[last:], nil)
}

// swarmEngines starts or ends the engines.
func swarmEngines(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"../scripts/swarm-engines.sh"}, args...)...)
	if image := os.Getenv("AOD_IMAGE"); image != "" {
		cmd.Env = append(os.Environ(), "IMAGES=aod/base "+image)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skip(string(out))
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// swarmed is the server of a stack.
type swarmed struct {
	t      *testing.T
	client *client.Client
	node   string // the host of a worker
}

func newSwarmed(t *testing.T, access []string) swarmed {
	t.Helper()
	pin, err := certs.ParsePin(access[1])
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := certs.Trust{Pins: func() ([]certs.Pin, error) { return []certs.Pin{pin}, nil }}.Config()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Server: access[0], TLS: trusted, Token: access[2]})
	if err != nil {
		t.Fatal(err)
	}
	return swarmed{t, c, "node-1"}
}

// docker does something at the manager.
func (s swarmed) docker(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("docker %v: %v: %s", args, err, out)
	}
	return string(out)
}

// connected returns the workers that take runs.
func (s swarmed) connected() (names []string) {
	all, err := s.client.Workers.List(context.Background())
	if err != nil {
		return nil
	}
	for _, w := range all {
		if w.State == api.WorkerConnected && w.Node == "" {
			names = append(names, w.Name)
		}
	}
	return names
}

func (s swarmed) awaitConnected(n int) {
	s.t.Helper()
	testkit.Eventually(s.t, fmt.Sprint(n, " workers are connected"), func() bool { return len(s.connected()) == n })
}

// load has five runs a second begin while something is done, and then awaits their ends: none may fail or begin twice.
func (s swarmed) load(what string, do func()) {
	s.t.Helper()
	var ids []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	ctx, cancel := context.WithTimeout(s.t.Context(), swarmLoad)
	defer cancel()
	clock := time.NewTicker(swarmEvery)
	defer clock.Stop()
	for ctx.Err() == nil {
		r, err := s.client.Runs.Submit(s.t.Context(), client.Submission{Unit: "nap", Input: []byte("{}")})
		if err != nil {
			s.t.Fatal(err)
		}
		ids = append(ids, r.ID)
		<-clock.C
	}
	<-done
	failed, repeated, at := 0, 0, map[string]int{}
	for _, id := range ids {
		r := s.await(id)
		if r.Outcome != api.Success {
			failed++
			s.t.Errorf("run %s: %s, %+v", id, r.Outcome, r.Error)
		}
		if len(r.Attempts) > 0 {
			repeated++
		}
		at[r.Worker]++
	}
	s.t.Logf("%s: %d runs, %d failed, %d repeated, at %v", what, len(ids), failed, repeated, at)
	if failed+repeated > 0 || len(at) < swarmWorkers {
		s.t.Errorf("%s: %d failed, %d repeated, at %v", what, failed, repeated, at)
	}
}

func (s swarmed) await(id string) (r api.Record) {
	s.t.Helper()
	testkit.Eventually(s.t, "the run is over", func() bool {
		got, err := s.client.Runs.Get(context.Background(), id)
		r = got
		return err == nil && r.Outcome != ""
	})
	return r
}

func (s swarmed) drainsUnderLoad() {
	s.awaitConnected(swarmWorkers)
	s.load("a node is drained", func() {
		time.Sleep(swarmLoad / 4) // the load goes on
		s.docker("node", "update", "--availability", "drain", s.node)
		began := time.Now()
		testkit.Eventually(s.t, "its task has ended", func() bool {
			return strings.Contains(s.docker("node", "ps", s.node, "--format", "{{.CurrentState}}"), "Shutdown") &&
				!strings.Contains(s.docker("node", "ps", s.node, "--format", "{{.CurrentState}}"), "Running")
		})
		s.t.Logf("the drained worker had ended after %s", time.Since(began).Round(100*time.Millisecond))
		s.docker("node", "update", "--availability", "active", s.node)
	})
	s.awaitConnected(swarmWorkers)
}

func (s swarmed) updatesUnderLoad() {
	s.load("the workers are updated", func() {
		time.Sleep(swarmLoad / 4) // the load goes on
		began := time.Now()
		s.docker("service", "update", "--force", "--detach=false", "--quiet", "aod_worker")
		s.t.Logf("the update took %s", time.Since(began).Round(100*time.Millisecond))
	})
	s.awaitConnected(swarmWorkers)
}

func (s swarmed) removes() {
	failed := func() int {
		return strings.Count(s.docker("service", "ps", "aod_worker", "--filter", "node="+s.node, "--format", "{{.CurrentState}}"), "Failed")
	}
	before, began := failed(), time.Now()
	if err := s.client.Workers.Remove(s.t.Context(), s.node); err != nil {
		s.t.Fatal(err)
	}
	testkit.Eventually(s.t, "its task has failed", func() bool { return failed() > before })
	s.t.Logf("the removed worker's task had failed after %s", time.Since(began).Round(100*time.Millisecond))
	time.Sleep(15 * time.Second) // in which its node tries to join again
	if slices.Contains(s.connected(), s.node) {
		s.t.Error("it came back")
	}
}
