package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// walkerTools writes files, and at turn 9 waits for SIGUSR1 where the input says so.
const walkerTools = `import json
import signal

import aod

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
WAITS = json.load(open("/io/input.json")).get("waits")


def jot(n):
    with open("/workspace/jotted", "a") as jotted:
        jotted.write(f"{n};")
    with open(f"/io/output/jot-{n}", "w") as file:
        file.write(f"jotted {n}")
    aod.log(f"turn {n}")
    if WAITS and n == 9:
        signal.sigwait({signal.SIGUSR1})
    return open("/workspace/jotted").read()
`

const walkerTurns = 12

// walkingModel has an agent make a handoff and call a function in each turn, and answers in the last one.
type walkingModel struct {
	*httptest.Server

	mu    sync.Mutex
	asked map[string]int // bodies
}

func newWalkingModel(t *testing.T) *walkingModel {
	m := &walkingModel{asked: map[string]int{}}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *walkingModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var talk struct {
		Messages []struct {
			Role    string
			Content any
		}
	}
	if err != nil || json.Unmarshal(body, &talk) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.asked[string(body)]++
	m.mu.Unlock()
	turn, last := 1, ""
	for _, message := range talk.Messages {
		if message.Role == "assistant" {
			turn++
		}
		last, _ = message.Content.(string)
	}
	call := func(id int, name, arguments string) map[string]any {
		return map[string]any{"id": fmt.Sprintf("c%d-%d", turn, id), "type": "function", "function": map[string]string{"name": name, "arguments": arguments}}
	}
	calls := []map[string]any{call(1, "note", fmt.Sprintf(`{"n":%d}`, turn)), call(2, "jot", fmt.Sprintf(`{"n":%d}`, turn))}
	if turn == walkerTurns {
		answer, _ := json.Marshal(map[string]any{"jotted": strings.TrimSpace(last), "files": []string{"jot-1", "jot-8", "jot-11"}}) // of texts
		calls = []map[string]any{call(1, "final_answer", string(answer))}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // to a client that is there, or not
		"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": "", "tool_calls": calls}, "finish_reason": "tool_calls"}},
		"usage":   map[string]int{"prompt_tokens": 7, "completion_tokens": 3},
	})
}

// newWalker is a server whose agent "walker" asks a model twelve times, and is tried again so often.
func newWalker(t *testing.T, model *walkingModel, retries int) *server {
	s := newServer(t, "--retry-delay", "10ms", "--pool", "0")
	s.addNotes()
	for name, content := range map[string]string{
		"Dockerfile": "FROM aod/base\nCOPY . /capsule\n", "run.py": "import aod\n\naod.run()\n", "src/tools.py": walkerTools, "src/ai/task.md": "Walk.\n",
		"agent.yaml": fmt.Sprintf("name: walker\nmodel: small\nretries: %d\nbudgets: {calls: 100}\nlimits: {timeout: 5m}\n", retries),
		"tools.yaml": "- {name: note, capsule: note, parameters: {type: object, properties: {n: {type: int}}}}\n" +
			"- {name: jot, description: Jots., parameters: {type: object, properties: {n: {type: int}}}, sequential: true}\n",
		"schema.json": `{"input": {"type": "object"}, "output": {"type": "object", "properties": {"jotted": {"type": "string"},
			"files": {"type": "list", "items": {"type": "string", "format": "file_path"}}}, "required": ["jotted", "files"]}}`,
	} {
		write(t, content, s.units, "walker", name)
	}
	s.asksSmall(model.URL, "secret", "policy: {retries: 100}\n")
	return s
}

// judgeWalker wants a run to have come to what it comes to undisturbed: each answer of the model paid once, and each
// handoff made once. What was asked when the server died is asked again, and charged by an estimate beside these. A call
// that was under way when its caller died was cancelled, or killed with it.
func (s *server) judgeWalker(id string, model *walkingModel) api.Record {
	s.t.Helper()
	record := s.await(id)
	const want = `{"files":["jot-1","jot-8","jot-11"],"jotted":"1;2;3;4;5;6;7;8;9;10;11;"}`
	if record.Outcome != api.Success || string(record.Output) != want {
		s.t.Fatalf("it is %s, with %s: %+v", record.Outcome, record.Output, record.Error)
	}
	for _, n := range []int{1, 8, 11} {
		if raw, err := s.file(record, fmt.Sprintf("jot-%d", n)); err != nil || string(raw) != fmt.Sprintf("jotted %d", n) {
			s.t.Errorf("jot-%d is %q: %v", n, raw, err)
		}
	}
	if m := record.Models; m == nil || m.Calls-m.Estimated != walkerTurns || m.Tokens.Input != 7*walkerTurns {
		s.t.Errorf("models were paid %+v", m)
	}
	made := 0
	for _, call := range s.callees(id) {
		switch killed := call.ExitCode != nil && *call.ExitCode == 137; {
		case call.Outcome == api.Success:
			made++
		case call.Outcome == api.WasCancelled, killed: // with its caller
		default:
			s.t.Errorf("a call is %+v", call)
		}
	}
	if made != walkerTurns-1 {
		s.t.Errorf("%d calls were made", made)
	}
	return record
}

func TestAnAgentGoesOnWhereItsContainerDied(t *testing.T) {
	t.Parallel()
	model := newWalkingModel(t)
	s := newWalker(t, model, 1)
	s.start()
	id := s.call("walker", `{"waits": true}`)
	s.awaitLineOf(1, id, "turn 9")
	lost := s.onlyContainer()
	s.kill()
	if err := s.engine.Kill(context.Background(), lost); err != nil {
		t.Fatal(err)
	}
	s.start() // another server finishes it
	s.awaitLineOf(2, id, "turn 9")
	if out, err := exec.Command("docker", "kill", "--signal", "USR1", s.onlyContainer()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if record := s.judgeWalker(id, model); record.Retries != 1 {
		t.Errorf("it was tried again %d times", record.Retries)
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	for body, n := range model.asked {
		if len(model.asked) != walkerTurns || n > 1 {
			t.Errorf("of %d questions one was asked %d times: %.99s", len(model.asked), n, body)
		}
	}
}

// TestNoKillHasAnAgentPayTwice kills containers of agents at random moments.
func TestNoKillHasAnAgentPayTwice(t *testing.T) {
	t.Parallel()
	kills, dice := long(t, "AOD_KILLS"), dice(t)
	model := newWalkingModel(t)
	s := newWalker(t, model, 100)
	s.start()
	agents, retries := 0, 0
	for left := kills; left > 0; agents++ {
		id := s.call("walker", "{}")
		s.awaitLine(id, "turn 1")
		for ; left > 0 && !s.isOver(id); left-- {
			time.Sleep(time.Duration(dice.Int64N(int64(4 * time.Second))))
			s.killContainers()
			if left%3 == 0 {
				s.kill()
				s.start()
			}
		}
		record := s.judgeWalker(id, model)
		retries += record.Retries
	}
	t.Logf("%d agents were begun anew %d times by %d kills", agents, retries, kills)
}

const rememberingLogic = `import time

import aod

worked = []


def work():
    worked.append(1)
    return {"at": time.time_ns()}


def execute(payload):
    kept = aod.remember("what took long / é", work)
    aod.log("kept")
    aod.log(kept["at"])
    if worked:
        time.sleep(600)
    return kept
`

func TestWhatIsRememberedIsNotWorkedForAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--retry-delay", "10ms", "--pool", "0")
	for name, content := range map[string]string{
		"Dockerfile": "FROM aod/base\nCOPY . /capsule\n", "run.py": "import aod\n\naod.run()\n", "src/main.py": rememberingLogic,
		"agent.yaml": "name: remembers\nretries: 1\nlimits: {timeout: 5m}\n", "tools.yaml": "[]\n",
		"schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
	} {
		write(t, content, s.units, "remembers", name)
	}
	s.start()
	id := s.call("remembers", "{}")
	s.awaitLineOf(1, id, "kept")
	lost := s.onlyContainer()
	s.kill()
	if err := s.engine.Kill(context.Background(), lost); err != nil {
		t.Fatal(err)
	}
	s.start()
	record := s.await(id)
	if record.Outcome != api.Success || record.Retries != 1 {
		t.Fatalf("it is %s after %d retries: %+v", record.Outcome, record.Retries, record.Error)
	}
	for attempt := range 2 {
		s.awaitLineOf(1+attempt, id, strings.Trim(string(record.Output), `{"at:}`))
	}
}

func TestAnAgentIsRunAgainFromATurn(t *testing.T) {
	t.Parallel()
	model := newWalkingModel(t)
	s := newWalker(t, model, 0)
	s.start()
	first := s.call("walker", "{}")
	s.judgeWalker(first, model)
	again := func(id, from string) string {
		s.t.Helper()
		code, out, errs := command(t, t.Context(), s.addressed("rerun", id, "--from", from, "--detach")...)
		if code != 0 {
			t.Fatalf("%s\n%s", out, errs)
		}
		return strings.TrimSpace(out)
	}
	second := again(first, "turn:9")
	record := s.await(second)
	third := again(second, "turn:11")
	for id, paid := range map[string]int{second: 4, third: 2} {
		got := s.await(id)
		if got.Outcome != api.Success || string(got.Output) != string(record.Output) || got.Models == nil || got.Models.Charged != int64(10*paid) {
			t.Errorf("it is %s with %s, and paid %+v: %+v", got.Outcome, got.Output, got.Models, got.Error)
		}
		if made := len(s.callees(id)); made != paid-1 {
			t.Errorf("%d calls were made for %d turns", made, paid)
		}
	}
	times := map[int]int{}
	for _, n := range model.asked {
		times[n]++
	}
	if want := map[int]int{1: 8, 2: 2, 3: 2}; !maps.Equal(times, want) {
		t.Errorf("questions were asked so often: %v", times)
	}
	for id, from := range map[string]string{first: "turn:14", second: "turn:8", third: "turn:0"} {
		if code, _, errs := command(t, t.Context(), s.addressed("rerun", id, "--from", from, "--detach")...); code == 0 || !strings.Contains(errs, "turn") {
			t.Errorf("from %s: %d %s", from, code, errs)
		}
	}
	write(t, "Walk on.\n", s.units, "walker", "src/ai/task.md")
	testkit.Eventually(t, "another version is refused", func() bool {
		code, _, errs := command(t, t.Context(), s.addressed("rerun", first, "--from", "turn:2", "--detach")...)
		return code != 0 && strings.Contains(errs, "has changed since that run")
	})
}
