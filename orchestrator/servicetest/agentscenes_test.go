package servicetest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/access"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/turns"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// agentOption adds a unit of the kind agent.
func agentOption(name, agent string, program servicetest.Program) servicetest.Option {
	files := servicetest.Unit(name, map[string]string{
		"agent.yaml": "name: " + name + "\nkind: agent\nimage: " + dockertest.Image + "\n" + agent,
	})
	return func(t testing.TB, s *servicetest.Settings) {
		t.Helper()
		files(t, s)
		s.Programs[name] = program
	}
}

// await returns false when a program is killed before its gate opens.
func await(ctx context.Context, gate <-chan struct{}) bool {
	select {
	case <-gate:
		return true
	case <-ctx.Done():
		return false
	}
}

// agentScene has a run of a wrapped agent on a project, whose message has a secret.
func agentScene(testing.TB) *scene {
	gate, s := make(chan struct{}), &scene{}
	edit := func(ctx context.Context, box servicetest.Sandbox) int {
		if !await(ctx, gate) {
			return 137
		}
		_ = os.WriteFile(filepath.Join(box.Path("/workspace"), "new.txt"), []byte("new\n"), 0o600)
		box.Print(`{"reply": "done", "conversation": "own", "tokens": {"in": 7}, "cost": 0.25}`)
		return 0
	}
	s.options = []servicetest.Option{agentOption("edits", "workspace: {write: true}\n"+`agent:
  command: [edit]
  flags: {json: true}
  caller_env: [MODE]
  result: {format: json, text: /reply, session: /conversation, usage: /tokens, cost_usd: /cost}
`, edit)}
	s.begin = func(h *servicetest.Harness) {
		h.Until(h.Send(spool.Submission{
			Unit: "edits", Input: []byte(`{"message": "the key is sk-proj-inthemessage0123456789"}`), Files: projectOf(h),
			Start: capsule.AgentStart{Env: map[string]string{"MODE": "fast"}, Dir: "sub"},
		}), servicetest.Running)
	}
	s.goOn = func(*servicetest.Harness) { close(gate) }
	return s
}

// projectOf receives a project of two files.
func projectOf(h *servicetest.Harness) *spool.Spool {
	h.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, name := range []string{"a.txt", "sub/b.txt"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 2, Typeflag: tar.TypeReg}); err != nil {
			h.Fatal(err)
		}
		if _, err := w.Write([]byte("x\n")); err != nil {
			h.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		h.Fatal(err)
	}
	files, err := h.Service.NewSpool()
	if err == nil {
		err = files.AddProject(&archive, 1<<20)
	}
	if err != nil {
		h.Fatal(err)
	}
	return files
}

// sessionScene has a session with a container for each turn: one turn is over, one goes on, and one
// waits for it. A second session is closed.
func sessionScene(testing.TB) *scene {
	gate, s := make(chan struct{}), &scene{}
	say := func(ctx context.Context, box servicetest.Sandbox) int {
		if strings.Contains(strings.Join(box.Spec.Cmd, " "), "second") && !await(ctx, gate) {
			return 137
		}
		box.Print(`{"session_id": "own", "result": "said"}`)
		return 0
	}
	s.options = []servicetest.Option{agentOption("says", `agent:
  command: [say, "{message}"]
  mode: interactive
  input: args
  resume: [--resume, "{session}"]
  result: {format: json, text: /result, session: /session_id}
session: {keep_alive: false}
`, say)}
	s.begin = func(h *servicetest.Harness) {
		session := sessionOf(h, "says", projectOf(h))
		h.Await(turn(h, session, "first"))
		h.Until(turn(h, session, "second"), servicetest.Running)
		turn(h, session, "third")
		closed := sessionOf(h, "says", nil)
		if _, err := h.Service.Sessions.Close(access.WithServer(context.Background()), closed, "it is enough"); err != nil {
			h.Fatal(err)
		}
	}
	s.goOn = func(*servicetest.Harness) { close(gate) }
	return s
}

func sessionOf(h *servicetest.Harness, unit string, files *spool.Spool) string {
	h.Helper()
	made, err := h.Service.Sessions.Create(access.WithServer(context.Background()), unit, files)
	if err != nil {
		h.Fatal(err)
	}
	return made.ID
}

func turn(h *servicetest.Harness, session, message string) string {
	h.Helper()
	input := servicetest.JSON(map[string]string{"message": message})
	return h.Send(spool.Submission{Session: session, Input: input})
}

const reply = `{"type":"assistant","message":{"content":[{"type":"text","text":"heard %d"}]}}
{"type":"result","subtype":"success"}
`

// livingScene has a session whose container lives on. Its program has heard two messages, and
// answered one.
func livingScene(testing.TB) *scene {
	gate, s := make(chan struct{}), &scene{}
	live := func(ctx context.Context, box servicetest.Sandbox) int {
		// What an earlier process was told is not said again.
		for told := strings.Count(box.Printed(), `"result"`); ctx.Err() == nil; {
			heard := box.Fed()
			for ; told < len(heard); told++ {
				if strings.Contains(heard[told], "second") && !await(ctx, gate) {
					return 137
				}
				box.Print(fmt.Sprintf(reply, told+1))
			}
			time.Sleep(time.Millisecond) // as the init, which copies a stdin that grows
		}
		return 137
	}
	const lives = `agent: {command: [live], mode: interactive, protocol: stream-json}
session: {keep_alive: true}
limits: {memory: 64MiB}
`
	s.options = []servicetest.Option{agentOption("lives", lives, live), agentOption("alone", lives, live)}
	s.begin = func(h *servicetest.Harness) {
		session := sessionOf(h, "lives", nil)
		h.Await(turn(h, session, "first"))
		h.Until(turn(h, session, "second"), servicetest.Running)
		// A run without a session has one for itself.
		h.Until(h.Submit("alone", map[string]string{"message": "second alone"}), servicetest.Running)
	}
	s.goOn = func(h *servicetest.Harness) {
		close(gate)
		page, err := h.Service.Sessions.List(access.WithServer(context.Background()), turns.Filter{})
		if err != nil || len(page.Sessions) != 1 {
			h.Fatal(page, err)
		}
		h.Within("the session rests", func() bool { return rests(h) })
		if _, err := h.Service.Sessions.Close(access.WithServer(context.Background()), page.Sessions[0].ID, "enough"); err != nil {
			h.Fatal(err)
		}
		h.Within("its container is gone", func() bool { return len(readContainers(h)) == 0 })
	}
	return s
}

const readerCard = `{
  "name": "reader", "version": "1.0.0", "description": "Reads its model.", "capabilities": [],
  "inputs": [{"media_type": "*/*", "description": "anything"}],
  "outputs": [{"media_type": "application/json", "description": "its model"}],
  "config": {"model-path": {"type": "string", "description": "the model", "default": null}}
}`

// auScene has a run of an Agentic Unit with a model and a stdin.
func auScene(t testing.TB) *scene {
	gate, s := make(chan struct{}), &scene{}
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	servicetest.Write(t, model, "weights")
	s.plain = map[string]string{model: "<model>"}
	read := func(ctx context.Context, box servicetest.Sandbox) int {
		if slices.Contains(box.Spec.Cmd, "--describe") {
			box.Print(readerCard)
			return 0
		}
		if !await(ctx, gate) {
			return 137
		}
		box.Print(`{"model": "weights"}`)
		return 0
	}
	s.options = []servicetest.Option{
		servicetest.Unit("reader", map[string]string{
			"Dockerfile": "FROM " + dockertest.Image + "\nCMD [\"reader\"]\n", "agent.yaml": "kind: au\nname: reader\n",
		}),
		servicetest.Set(func(s *servicetest.Settings) {
			s.Programs["reader"] = read
			s.Containers.Units["reader"] = container.Extra{ModelPath: model}
		}),
	}
	s.begin = func(h *servicetest.Harness) {
		files := spoolOf(h, "stdin", "stdin", "input")
		h.Until(h.Send(spool.Submission{Unit: "reader", Files: files}), servicetest.Running)
	}
	s.goOn = func(*servicetest.Harness) { close(gate) }
	return s
}
