package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// againLogic tells what it finds, and leaves something of itself wherever it can.
const againLogic = `import os, signal, sys, time

served = [0]
HOME = os.getcwd(), dict(os.environ), list(sys.argv), sys.stdout, signal.getsignal(signal.SIGUSR1)


def execute(payload):
    served[0] += 1
    seen = [os.path.join(d, n) for d in ("/tmp", "/workspace", "/dev/shm", "/io/input", "/io/output", "/io/handoff/outgoing") for n in os.listdir(d)]
    seen += [n for n in os.listdir("/io") if n not in ("input", "output", "handoff", "input.json")]
    same = HOME == (os.getcwd(), dict(os.environ), list(sys.argv), sys.stdout, signal.getsignal(signal.SIGUSR1))
    mark = payload["mark"]
    print("out", mark)
    sys.stderr.write(f"err {mark}")
    for d in ("/tmp", "/workspace/a/b", "/dev/shm", "/io", "/io/output", "/io/handoff/outgoing"):
        os.makedirs(d, exist_ok=True)
        with open(f"{d}/left", "w") as file:
            file.write(mark)
    os.chdir("/tmp")
    os.environ["LEFT"] = mark
    sys.argv.append(mark)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    while payload.get("hold") and not os.path.exists("/workspace/go"):
        time.sleep(0.05)
    return {"mark": mark, "count": served[0], "seen": seen, "same": same, "left": "left"}
`

const againSchema = `{"input": {"type": "object"}, "output": {"type": "object", "properties": {
  "mark": {"type": "string"}, "count": {"type": "int"}, "left": {"type": "string", "format": "file_path"}}}}`

// againInput is what a run of "again" is to do.
type againInput struct {
	Mark string `json:"mark"`
	Hold bool   `json:"hold,omitempty"` // it goes on until it is let go
}

// againOutput is what it tells.
type againOutput struct {
	Mark  string   `json:"mark"`
	Count int      `json:"count"` // runs of its process
	Seen  []string `json:"seen"`  // files of others
	Same  bool     `json:"same"`  // its process is as it was loaded
	Left  string   `json:"left"`
}

// addAgain gives the server the capsule "again".
func (s *server) addAgain(agent string) {
	s.t.Helper()
	for name, content := range map[string]string{
		"Dockerfile": "FROM aod/base\nCOPY . /capsule\n", "agent.yaml": "name: again\nlimits: {timeout: 3m}\n" + agent, "tools.yaml": "[]\n",
		"schema.json": againSchema, "run.py": "import aod\n\naod.run()\n", "src/main.py": againLogic,
	} {
		write(s.t, content, s.units, "again", name)
	}
}

func (s *server) again(in againInput) string {
	s.t.Helper()
	raw, _ := json.Marshal(in) // strings and numbers
	record, err := s.submit(s.t.Context(), client.Submission{Unit: "again", Input: raw})
	if err != nil {
		s.t.Fatal(err)
	}
	return record.ID
}

// judgeAgain wants a run to have done well, alone as far as it can see.
func (s *server) judgeAgain(record api.Record, mark string) againOutput {
	s.t.Helper()
	var out againOutput
	if record.Outcome != api.Success || json.Unmarshal(record.Output, &out) != nil {
		s.t.Fatalf("%s %+v\n%s", record.Outcome, record.Error, s.log())
	}
	if diff := cmp.Diff(againOutput{mark, max(record.Container.Served, 1), []string{}, true, "left"}, out); diff != "" {
		s.t.Errorf("run %d of its container: %s", record.Container.Served, diff)
	}
	if content, err := s.file(record, "left"); err != nil || string(content) != mark {
		s.t.Errorf("its file is %q, %v", content, err)
	}
	if diff := cmp.Diff([]string{"err " + mark, "out " + mark}, s.linesOf(record.ID)); diff != "" {
		s.t.Error(diff)
	}
	return out
}

// linesOf are those of a run's log, sorted: its two streams come as they like.
func (s *server) linesOf(id string) (lines []string) {
	s.t.Helper()
	for entry, err := range s.client.Runs.Log(context.Background(), id, api.LogFilter{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		lines = append(lines, entry.Text)
	}
	slices.Sort(lines)
	return lines
}

func TestAKilledServerLosesNoRunOfAContainerThatServesSeveral(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--concurrency", "4")
	s.addAgain("reuse: 100\n")
	s.start()
	testkit.Eventually(t, "a run is its container's second", func() bool {
		record := s.await(s.again(againInput{Mark: "a"}))
		s.judgeAgain(record, "a")
		return record.Container.Served == 2
	})
	id := s.again(againInput{Mark: "b", Hold: true})
	during := s.until(id, "is running", running)
	testkit.Eventually(t, "its program has looked at what is there", func() bool { // a run is running before that
		left, _ := filepath.Glob(filepath.Join(s.home(), "runs", id, "*", "workspace/a/b/left"))
		return len(left) == 1
	})
	s.kill()
	s.start()
	s.letGo(id)
	record := s.await(id)
	s.judgeAgain(record, "b")
	if during.Container.ID != record.Container.ID || record.Retries != 0 {
		t.Errorf("%+v, then %+v", during.Container, record.Container)
	}
}
