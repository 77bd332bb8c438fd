package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// kindsVar has the program know the kind of unit that this file adds.
const kindsVar = "AOD_TEST_KINDS"

// testKinds is a kind of unit that AOD knows nothing of: "steps" counts up to a number in this
// very process, asks another unit on the way, and goes on after a kill where it was.
func testKinds() []unitKind {
	if os.Getenv(kindsVar) == "" {
		return nil
	}
	return []unitKind{{read: capsule.Kind{Name: "steps", Read: readSteps}, run: stepsKind{}}}
}

// readSteps reads steps.txt, a word to greet with.
func readSteps(d *capsule.Directory, c *capsule.Capsule) {
	c.Contract, c.Tools = d.Contract(), d.Tools()
	word, ok := d.ReadFile("steps.txt", "write a word into it")
	if !ok {
		return
	}
	d.Refuse("a unit of steps has none", "remove it: nothing is built", "Dockerfile")
	c.Definition = strings.TrimSpace(string(word))
}

type stepsKind struct{}

// Check implements run.Kind.
func (stepsKind) Check(run.Request, run.Input) error { return nil }

// Execution implements run.Kind.
func (stepsKind) Execution(r *run.Run) run.Execution {
	x := &stepsExecution{Run: r}
	if raw, ok := r.Saved.(json.RawMessage); ok {
		_ = json.Unmarshal(raw, &x.saved)
	}
	r.Saved = &x.saved
	return x
}

type stepsInput struct {
	Until string `json:"until"` // a file that it waits for; "" is none
	Ask   string `json:"ask"`   // a unit of this kind that it calls; "" is none
}

type stepsExecution struct {
	*run.Run
	saved struct {
		Begun int `json:"begun"` // how often an attempt began
	}
}

// Attempt implements run.Execution.
func (x *stepsExecution) Attempt(ctx context.Context) (run.Result, error) {
	x.saved.Begun++
	if err := x.Enter(api.Starting, ""); err != nil {
		return run.Result{}, err
	}
	now := time.Now().UTC()
	x.Record.StartedAt = &now
	if err := x.Enter(api.Running, ""); err != nil {
		return run.Result{}, err
	}
	return x.Resume(ctx)
}

// Resume implements run.Execution.
func (x *stepsExecution) Resume(ctx context.Context) (run.Result, error) {
	limited, stop := context.WithTimeoutCause(ctx, x.Limits.Timeout, run.ErrTimeout)
	defer stop()
	var in stepsInput
	if err := json.Unmarshal(x.Input.Payload.JSON(), &in); err != nil {
		return run.Result{}, err
	}
	for in.Until != "" && limited.Err() == nil && !there(in.Until) {
		time.Sleep(time.Millisecond)
	}
	switch cause := context.Cause(limited); {
	case errors.Is(cause, run.ErrTimeout):
		return run.TimedOut(nil, x.Limits.Timeout), nil
	case cause != nil:
		return run.Stopped(nil, cause), nil
	}
	answer, err := x.ask(ctx, in.Ask)
	if err != nil {
		return run.Result{}, err
	}
	output, _ := json.Marshal(map[string]any{"begun": x.saved.Begun, "answer": answer})
	return run.Result{State: api.Completed, Outcome: api.Success, Output: output}, nil
}

// ask calls a unit without any sandbox.
func (x *stepsExecution) ask(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	calls := x.Calls()
	defer calls.End(run.ErrCallerEnded)
	broker := x.Broker(calls, nil)
	id, err := broker.Start(ctx, handoff.Request{Target: name, Key: "once"})
	if err != nil {
		return "", err
	}
	result, err := broker.Await(ctx, id)
	return string(result.Output), err
}

// Settle implements run.Execution.
func (*stepsExecution) Settle(context.Context) {}

// Discard implements run.Execution.
func (*stepsExecution) Discard(context.Context) {}

// Remove implements run.Execution.
func (*stepsExecution) Remove(context.Context) error { return nil }

// Release implements run.Execution.
func (*stepsExecution) Release() {}

func there(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

const stepsSchema = `{
  "input": {"type": "object", "properties": {"until": {"type": "string"}, "ask": {"type": "string"}}, "additionalProperties": false},
  "output": {"type": "object"}
}`

func writeSteps(t *testing.T, units, name string) {
	t.Helper()
	write(t, "name: "+name+"\nkind: steps\n", units, name, "agent.yaml")
	write(t, "hello\n", units, name, "steps.txt")
	write(t, stepsSchema, units, name, "schema.json")
	write(t, "- {name: other, capsule: other}\n", units, name, "tools.yaml")
}

// aodWithKind runs a command line of the program that knows the kind, without an engine.
func aodWithKind(t *testing.T, data string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs strings.Builder
	process := exec.Command("aod", append([]string{"--data", data}, args...)...)
	process.Env = append(os.Environ(), kindsVar+"=1", "DOCKER_HOST=unix:///nonexistent.sock")
	process.Stdout, process.Stderr = &out, &errs
	_ = process.Run() // its code tells
	return out.String(), errs.String(), process.ProcessState.ExitCode()
}

func TestAKindThatIsAddedRunsByCommand(t *testing.T) {
	units, data := t.TempDir(), t.TempDir()
	writeSteps(t, units, "count")
	writeSteps(t, units, "other")
	t.Run("with its result on stdout, and no engine", func(t *testing.T) {
		out, errs, code := aodWithKind(t, data, "run", filepath.Join(units, "count"))
		if code != 0 || strings.TrimSpace(out) != `{"answer":"","begun":1}` {
			t.Errorf("code %d: %s%s", code, out, errs)
		}
	})
	t.Run("and calls others without a sandbox", func(t *testing.T) {
		out, errs, code := aodWithKind(t, data, "run", filepath.Join(units, "count"), "--set", "ask=other")
		if code != 0 || strings.TrimSpace(out) != `{"answer":"{\"answer\":\"\",\"begun\":1}","begun":1}` {
			t.Errorf("code %d: %s%s", code, out, errs)
		}
	})
	t.Run("which its tools.yaml names", func(t *testing.T) {
		writeSteps(t, units, "stranger")
		_, errs, code := aodWithKind(t, data, "run", filepath.Join(units, "count"), "--set", "ask=stranger")
		if code == 0 || !strings.Contains(errs, "tools.yaml") {
			t.Errorf("code %d: %s", code, errs)
		}
	})
	t.Run("its time is its own", func(t *testing.T) {
		_, errs, code := aodWithKind(t, data, "run", filepath.Join(units, "count"), "--set", "until=/nonexistent", "--timeout", "50ms")
		if code != 124 || !strings.Contains(errs, "its time limit") {
			t.Errorf("code %d: %s", code, errs)
		}
	})
	t.Run("its contract is kept, and its directory is checked", func(t *testing.T) {
		if _, errs, code := aodWithKind(t, data, "run", filepath.Join(units, "count"), "--input", `{"x":1}`); code != 2 {
			t.Errorf("code %d: %s", code, errs)
		}
		if out, errs, code := aodWithKind(t, data, "validate", filepath.Join(units, "count")); code != 0 {
			t.Errorf("code %d: %s%s", code, out, errs)
		}
		write(t, "FROM scratch\n", units, "broken", "Dockerfile")
		write(t, "kind: steps\n", units, "broken", "agent.yaml")
		_, errs, code := aodWithKind(t, data, "run", filepath.Join(units, "broken"))
		if code == 0 || !strings.Contains(errs, "steps.txt") || !strings.Contains(errs, "schema.json") {
			t.Errorf("code %d: %s", code, errs)
		}
	})
	t.Run("and is refused by a program that doesn't know it", func(t *testing.T) {
		process := exec.Command("aod", "--data", data, "run", filepath.Join(units, "count"))
		said, _ := process.CombinedOutput()
		if process.ProcessState.ExitCode() == 0 || !strings.Contains(string(said), "kind") || !strings.Contains(string(said), "remote") {
			t.Errorf("code %d: %s", process.ProcessState.ExitCode(), said)
		}
	})
}

func TestAKindThatIsAddedLivesOnAServer(t *testing.T) {
	dockertest.Require(t)
	s := newServer(t)
	s.env = append(s.env, kindsVar+"=1")
	writeSteps(t, s.units, "count")
	writeSteps(t, s.units, "other")
	s.addCaller("boss", `persist POST /handoff k '{"target":"count","args":{}}'; echo "$answer" > /io/output.json`)
	write(t, "- {name: count, capsule: count}\n", s.units, "boss", "tools.yaml")
	s.start()
	submit := func(input string) string {
		t.Helper()
		record, err := s.submit(t.Context(), client.Submission{Unit: "count", Input: json.RawMessage(input)})
		if err != nil {
			t.Fatal(err)
		}
		return record.ID
	}
	t.Run("it is listed", func(t *testing.T) {
		if listed := s.aod("units"); !strings.Contains(listed, "steps") {
			t.Errorf("units:\n%s", listed)
		}
	})
	t.Run("and run, and what it calls is in its tree", func(t *testing.T) {
		record := s.await(submit(`{"ask":"other"}`))
		if record.Outcome != api.Success || record.Kind != "steps" || len(s.callees(record.ID)) != 1 {
			t.Errorf("%s %s: %s", record.Kind, record.Outcome, record.Output)
		}
	})
	t.Run("a capsule calls it by a handoff", func(t *testing.T) {
		record := s.await(s.call("boss", `{}`))
		if called := s.callees(record.ID); record.Outcome != api.Success || len(called) != 1 || called[0].Kind != "steps" || called[0].Outcome != api.Success {
			t.Errorf("%s: %+v", record.Outcome, called)
		}
	})
	gate := filepath.Join(t.TempDir(), "gate")
	waits := fmt.Sprintf(`{"until":%q}`, gate)
	t.Run("it goes on after kill -9 and begins nothing again", func(t *testing.T) {
		id := submit(waits)
		s.until(id, "runs", running)
		s.kill()
		s.start()
		s.until(id, "runs still", running)
		write(t, "", filepath.Dir(gate), filepath.Base(gate))
		if record := s.await(id); record.Outcome != api.Success || string(record.Output) != `{"answer":"","begun":1}` || record.Retries != 0 {
			t.Errorf("%s after %d retries: %s", record.Outcome, record.Retries, record.Output)
		}
		if err := os.Remove(gate); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a server that doesn't know it ends its runs with the reason", func(t *testing.T) {
		id := submit(waits)
		s.until(id, "runs", running)
		s.kill()
		s.env = s.env[:len(s.env)-1]
		s.start()
		record := s.await(id)
		if record.Outcome != api.SystemError || record.Error == nil || !strings.Contains(record.Error.Message, "kind") {
			t.Errorf("%s: %+v", record.Outcome, record.Error)
		}
		s.kill()
		s.env = append(s.env, kindsVar+"=1")
		s.start()
	})
}
