package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/programtest"
)

// agentClient is the command line of the protocol's SDK.
type agentClient struct {
	t       *testing.T
	program string
	token   string
}

func newAgentClient(t *testing.T, token string) agentClient {
	t.Helper()
	return agentClient{t, a2aProgram(t), token}
}

// does runs a command, and returns what it prints.
func (c agentClient) does(args ...string) string {
	c.t.Helper()
	said, err := c.tries(args...)
	if err != nil {
		c.t.Fatalf("a2a %s: %v: %s", strings.Join(args, " "), err, said)
	}
	return said
}

func (c agentClient) tries(args ...string) (string, error) {
	var out, problems bytes.Buffer
	process := exec.CommandContext(c.t.Context(), c.program, append(args, "--auth", "Bearer "+c.token, "--insecure")...)
	process.Stdout, process.Stderr = &out, &problems
	err := process.Run()
	return out.String() + problems.String(), err
}

// agentTask is a task as the command line prints it.
type agentTask struct {
	ID        string
	ContextID string
	Status    struct{ State string }
	Artifacts []struct {
		Parts []struct{ Data map[string]any }
	}
}

func (c agentClient) task(args ...string) agentTask {
	c.t.Helper()
	var task agentTask
	said := c.does(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(said), &task); err != nil {
		c.t.Fatalf("%v: %s", err, said)
	}
	return task
}

func TestTheSDKsCommandLineUsesUnits(t *testing.T) {
	t.Parallel()
	onlyLong(t, "AOD_EXAMPLES")
	s := newServer(t)
	remote := programtest.FreeAddress(t)
	write(t, "a2a:\n  grpc: "+remote+"\n", s.data, "aod.yaml")
	s.flags = append(s.flags, "--config", filepath.Join(s.data, "aod.yaml"))
	s.addWorker("worker", "")
	write(t, "name: worker\na2a: {tags: [found-by-this]}\n", s.units, "worker", "agent.yaml")
	s.start()
	c := newAgentClient(t, s.token)
	unit := s.url() + "/a2a/worker"
	if said := c.does("discover", unit); !strings.Contains(said, "worker") || !strings.Contains(said, "GRPC") {
		t.Error(said)
	}
	if said := c.does("discover", unit, "-o", "json"); !strings.Contains(said, `"found-by-this"`) {
		t.Error(said)
	}
	if said := c.does("discover", s.url()); !strings.Contains(said, "worker") {
		t.Error(said)
	}
	for _, binding := range [][]string{
		{unit, "--transport", "jsonrpc"}, {unit, "--transport", "rest"}, {remote, "--transport", "grpc", "--tenant", "worker"},
	} {
		t.Run(binding[2], func(t *testing.T) { c.t = t; c.usesAll(s, binding[0], binding[1:]) })
	}
	log := s.log()
	for _, canary := range []string{s.token, "canary"} {
		if strings.Contains(log, canary) || strings.Contains(s.metrics(), canary) {
			t.Errorf("%q is told", canary)
		}
	}
}

// subscribes begins a task and follows it to its end. On a busy machine a task may end before it is
// subscribed to: then it tries with one that takes longer.
func (c agentClient) subscribes(begin func(ticks int) agentTask, subscribe func(id string) []string) (task agentTask, said string) {
	c.t.Helper()
	for _, ticks := range []int{20, 100, 500} {
		task = begin(ticks)
		var err error
		if said, err = c.tries(subscribe(task.ID)...); err == nil {
			return task, said
		}
	}
	c.t.Fatalf("no task can be subscribed to: %s", said)
	return task, said
}

// usesAll does by one binding all that a client does.
func (c agentClient) usesAll(s *server, unit string, binding []string) {
	c.t.Helper()
	with := func(args ...string) []string { return append(args, binding...) }
	send := func(input string, more ...string) []string {
		return with(append([]string{"send", unit, "--parts", `[{"data":` + input + `}]`}, more...)...)
	}
	done := c.task(send(`{"mark":7}`, "--context", "canary-group")...)
	if done.Status.State != "TASK_STATE_COMPLETED" || done.ContextID != "canary-group" || done.Artifacts[0].Parts[0].Data["mark"] != 7.0 {
		c.t.Errorf("%+v", done)
	}
	if got := c.task(with("get", "task", unit, done.ID)...); got.Status.State != "TASK_STATE_COMPLETED" || got.ID != done.ID {
		c.t.Errorf("%+v", got)
	}
	if said := c.does(send(`{"mark":8}`, "--stream")...); !strings.Contains(said, "[status] completed") || !strings.Contains(said, `{"mark":8}`) {
		c.t.Errorf("%s", said)
	}
	if said := c.does(with("list", "tasks", unit, "--context", "canary-group")...); !strings.Contains(said, done.ID) {
		c.t.Errorf("%s", said)
	}
	slow, said := c.subscribes(func(ticks int) agentTask {
		return c.task(send(fmt.Sprintf(`{"mark":9,"ticks":%d}`, ticks), "--immediate")...)
	}, func(id string) []string { return with("subscribe", unit, id) })
	if !strings.Contains(said, "[status] completed") {
		c.t.Errorf("%s", said)
	}
	if said, err := c.tries(with("subscribe", unit, slow.ID)...); err == nil {
		c.t.Errorf("a task that has ended can be subscribed to: %s", said)
	}
	endless := c.task(send(`{"mark":1,"ticks":600}`, "--immediate")...)
	if said := c.does(with("cancel", unit, endless.ID)...); !strings.Contains(said, "canceled") {
		c.t.Errorf("%s", said)
	}
	record, err := s.client.Runs.Get(context.Background(), endless.ID)
	if err != nil || record.Outcome != api.WasCancelled || !slices.ContainsFunc(record.Transitions, func(t api.Transition) bool { return t.State == api.Cancelled }) {
		c.t.Errorf("%+v %v", record, err)
	}
	if said, err := c.tries(send(`{"mark":"canary"}`)...); err == nil || strings.Contains(said, "canary") {
		c.t.Errorf("an input against the contract: %v %s", err, said)
	}
}
