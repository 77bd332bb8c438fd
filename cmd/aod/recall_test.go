package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// noteScript writes a file, and fails for numbers from 13.
const noteScript = `n=$(number n)
(( n < 13 )) || exit 1
echo -n "note $n" > /io/output/note
echo "{\"n\":$n,\"note\":\"note\"}" > /io/output.json
`

// flowLogic makes five calls by a flow. After the third one it tells so, and waits for SIGUSR1.
const flowLogic = `import signal

import aod
from aod.flow import AsyncFlow, AsyncNode, BatchNode, Node, UnitNode, call

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})


class Three(BatchNode):
    def prep(self, shared):
        return [1, 2, 3]

    def exec(self, n):
        with open(aod.handoff("note", n=n).path("note")) as note:
            return note.read()

    def post(self, shared, prep_res, exec_res):
        shared["notes"] = exec_res


class Gate(Node):
    def exec(self, prep_res):
        aod.log("three calls")
        signal.sigwait({signal.SIGUSR1})


class Last(AsyncNode):
    async def exec_async(self, prep_res):
        return await call("note", n=5)

    async def post_async(self, shared, prep_res, exec_res):
        for file in shared["four"]["note"], exec_res.path("note"):
            with open(file) as note:
                shared["notes"].append(note.read())


async def execute(payload):
    shared = {"n": 4}
    three = Three()
    three >> Gate() >> UnitNode("note", {"n": "n"}, "four") >> Last()
    await AsyncFlow(three).run_async(shared)
    return {"notes": shared["notes"]}
`

func TestAFlowGoesOnAfterItsContainersDeath(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--retry-delay", "10ms", "--pool", "0")
	s.addNotes()
	for name, content := range map[string]string{
		"Dockerfile": "FROM aod/base\nCOPY . /capsule\n", "agent.yaml": "name: steps\nretries: 1\nbudgets: {calls: 5}\nlimits: {timeout: 5m}\n",
		"tools.yaml": "- {name: note, capsule: note}\n", "schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
		"run.py": "import aod\n\naod.run()\n", "src/main.py": flowLogic,
	} {
		write(t, content, s.units, "steps", name)
	}
	s.start()
	record, calls := s.dieOnce("steps", "three calls")
	if want := `{"notes":["note 1","note 2","note 3","note 4","note 5"]}`; record.Outcome != api.Success || string(record.Output) != want {
		t.Errorf("it is %s, with %s: %+v", record.Outcome, record.Output, record.Error)
	}
	if len(calls) != 5 {
		t.Errorf("%d calls were made", len(calls))
	}
}

// addNotes gives the server the unit "note", whose output has a file.
func (s *server) addNotes() {
	s.t.Helper()
	s.addCaller("note", noteScript)
	write(s.t, `{"input": {"type": "object"}, "output": {"type": "object", "properties": {"note": {"type": "string", "format": "file_path"}}}}`,
		s.units, "note", "schema.json")
}

// dieOnce runs a unit, kills its container when it has written the line, and has the next
// attempt go on from there. It returns the record and the ids of its calls, as they were made.
func (s *server) dieOnce(unit, line string) (record api.Record, calls []string) {
	s.t.Helper()
	id := s.call(unit, "{}")
	s.awaitLineOf(1, id, line)
	if err := s.engine.Kill(context.Background(), s.onlyContainer()); err != nil {
		s.t.Fatal(err)
	}
	s.awaitLineOf(2, id, line)
	if out, err := exec.Command("docker", "kill", "--signal", "USR1", s.onlyContainer()).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	record = s.await(id)
	if record.Retries != 1 {
		s.t.Errorf("it was tried again %d times: %+v", record.Retries, record.Error)
	}
	for _, run := range s.callees(id) {
		calls = append(calls, run.ID)
	}
	slices.Sort(calls)
	return record, calls
}

// awaitLineOf returns when an attempt has written a line.
func (s *server) awaitLineOf(attempt int, id, line string) {
	s.t.Helper()
	s.awaitEntry(id, fmt.Sprintf("%q in attempt %d", line, attempt),
		func(e api.LogEntry) bool { return e.Text == line && e.Attempt == attempt })
}

// onlyContainer is the one that runs.
func (s *server) onlyContainer() (id string) {
	s.t.Helper()
	testkit.Eventually(s.t, "one container runs", func() bool {
		ids := s.runningContainers()
		if len(ids) == 1 {
			id = ids[0]
		}
		return len(ids) == 1
	})
	return id
}
