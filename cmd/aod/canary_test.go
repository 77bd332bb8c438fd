package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

var sungBefore atomic.Bool

// No message, argument, answer, key, file name or path of a workspace is in a log, a metric or a span:
// neither of an agent's nor of a tool's.
func TestNoCanarySings(t *testing.T) {
	if sungBefore.Swap(true) {
		t.Skip("this process has exported its spans to the collector of another round")
	}
	collected, address := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
	s := newInside(t, "--log-level", "debug", "--log-format", "json", "--concurrency", "2")
	s.addCanaries()
	s.addSinger()
	s.start()
	s.singInASession("lives")
	s.singInASession("rests")
	s.singOverAProject()
	s.singToTheFaces()
	first := s.call("singer", `{}`)
	s.await(first)
	s.singByHTTP(first)
	said := s.singByStdio(first)
	_, metrics := s.answer("/metrics")
	s.kill() // what recovery says, too
	s.start()
	s.signal(syscall.SIGTERM) // its last spans leave with it
	s.exitCode()
	for where, text := range map[string]string{
		"the log": s.log(), "the metrics": metrics, "a span": collected.text(), "stderr of aod mcp": said,
	} {
		for line := range strings.Lines(text) {
			if strings.Contains(strings.ToLower(line), "tweety") || strings.Contains(line, s.token) {
				t.Errorf("%s has it: %.500s", where, line)
			}
		}
	}
	for _, says := range []string{`"msg":"tool called"`, `"msg":"run finished"`} {
		if !strings.Contains(s.log(), says) {
			t.Errorf("the log doesn't say %s", says)
		}
	}
	if !strings.Contains(metrics, "aod_runs_total") || !strings.Contains(collected.text(), "run") {
		t.Error("metrics or spans say nothing at all")
	}
	collected.hasCall(t, "singer")
}

func (s *server) addCanaries() {
	s.t.Helper()
	for name, more := range map[string]string{"lives": keptAlive, "rests": resumable + keptAlive} {
		s.runs(name, canaryTalks)
		write(s.t, "name: "+name+"\nkind: agent\nimage: "+dockertest.Image+"\nagent:\n  command: [talk]\n  mode: interactive\n  protocol: stream-json\n  approval: ask\n"+more, s.units, name, "agent.yaml")
	}
	s.runs("editor", canaryEdits)
	write(s.t, "name: editor\nkind: agent\nimage: "+dockertest.Image+"\naccess: read-write\nagent: {command: [edit, \"{message}\"], input: args, dir: /workspace/project}\n", s.units, "editor", "agent.yaml")
}

// canaryTalks says the word wherever its protocol has room for one.
func canaryTalks(ctx context.Context, box servicetest.Sandbox) int {
	s := &spoken{boxed: boxed{box, ctx}}
	s.says("system", map[string]any{"subtype": "init", "session_id": mcpCanary})
	s.Print("Tweety\n")
	_, _ = fmt.Fprintln(box.Stderr, mcpCanary)
	for {
		line, alive := s.nextMessage()
		if !alive {
			return 137
		}
		text := line.Message.Content[0].Text
		s.Print(`{"type":"assistant","message":{"content":[{"type":"text","text":"Tweety"},{"type":"thinking","thinking":"Tweety"},` +
			`{"type":"tool_use","name":"Tweety","id":"Tweety","input":{"Tweety":"Tweety"}},{"type":"Tweety"}]}}
{"type":"Tweety","subtype":"Tweety"}
{"type":"control_request","request_id":"Tweety-hook","request":{"subtype":"Tweety"}}
{"Tweety
`)
		s.says("control_request", map[string]any{
			"request_id": "Tweety-" + text,
			"request": map[string]any{
				"subtype": "can_use_tool", "tool_name": mcpCanary, "input": map[string]string{"path": "/Tweety/sk-Tweety0123456789abcdef"},
			},
		})
		if line = (toldLine{}); !s.next(&line) {
			return 137
		}
		if line.Type == "control_response" && strings.HasPrefix(line.Response.ID, "Tweety-hook") && !s.next(&line) {
			return 137
		}
		switch {
		case strings.Contains(text, "die"):
			return 9
		case strings.Contains(text, "fail"):
			s.says("result", map[string]any{"subtype": "error_Tweety", "is_error": true, "result": mcpCanary, "session_id": mcpCanary})
		default:
			s.says("result", map[string]any{
				"subtype": mcpCanary, "result": "Tweety " + text, "session_id": mcpCanary, "usage": map[string]int{mcpCanary: 1}, "total_cost_usd": 0.5,
			})
		}
	}
}

// canaryEdits leaves the word all over its project.
func canaryEdits(_ context.Context, box servicetest.Sandbox) int {
	dir := box.Path(box.Spec.WorkingDir)
	box.Print("Tweety\n")
	_, _ = fmt.Fprintln(box.Stderr, mcpCanary)
	appends(filepath.Join(dir, "Tweety.new"), mcpCanary)
	appends(filepath.Join(dir, "Tweety.txt"), mcpCanary)
	err := errors.Join(os.Remove(filepath.Join(dir, "dir-Tweety", "Tweety.md")), os.Symlink("/Tweety", filepath.Join(dir, "Tweety.link")),
		os.Mkdir(filepath.Join(dir, ".git"), 0o755))
	appends(filepath.Join(dir, ".git", mcpCanary), mcpCanary)
	if err != nil || strings.Contains(strings.Join(box.Spec.Cmd, " "), "fail") {
		return 3
	}
	return 0
}

// singInASession has turns that end well, fail, are stopped, and end with the program.
func (s *server) singInASession(unit string) {
	s.t.Helper()
	session := s.converse(unit)
	for i, text := range []string{"Tweety sk-Tweety0123456789abcdef", "fail Tweety", "stop Tweety", "die Tweety"} {
		id := s.say(session, text)
		s.until(id, "runs", running)
		question := ""
		testkit.Eventually(s.t, "it asks", func() bool {
			for q, err := range s.client.Questions.List(context.Background(), id) {
				if err == nil && strings.Contains(q.Text, mcpCanary) {
					question = q.ID
				}
			}
			return question != ""
		})
		ctx := s.t.Context()
		if err := s.client.Questions.Answer(ctx, question, api.Answer{Action: mcpCanary, Note: mcpCanary}); err == nil {
			s.t.Error("an answer that there isn't was taken")
		}
		if i == 2 {
			_, _ = s.client.Runs.Cancel(ctx, id, mcpCanary)
		} else if err := s.client.Questions.Answer(ctx, question, api.Answer{Action: "allow", By: mcpCanary, Note: mcpCanary}); err != nil {
			s.t.Error(err)
		}
		if r := s.await(id); i == 0 && !strings.HasPrefix(string(r.Output), `{"text":"Tweety Tweety ****`) {
			s.t.Errorf("%s %+v", r.Output, r.Error)
		}
	}
	_, _ = s.client.Sessions.Close(s.t.Context(), session)
	s.closed(session)
}

// singOverAProject has agents work on a project, well and not, and looks at all that it comes to.
func (s *server) singOverAProject() {
	s.t.Helper()
	dir := s.t.TempDir()
	write(s.t, mcpCanary, dir, "Tweety.txt")
	write(s.t, mcpCanary, dir, "dir-Tweety", "Tweety.md")
	project, err := workspace.Scan(s.t.Context(), dir, workspace.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, text := range []string{"sing", "fail"} {
		record, err := s.submit(s.t.Context(), client.Submission{Unit: "editor", Input: messageInput(text + mcpCanary), Project: project.WriteTar})
		if err != nil {
			s.t.Fatal(err)
		}
		record = s.await(record.ID)
		if record.Changes == nil || record.Changes.Files == 0 {
			s.t.Errorf("%+v %+v", record.Changes, record.Error)
		}
		for _, path := range []string{"changes", "changes.patch", "changes/files/Tweety.new", "changes/files/nothing-Tweety", "changes/files/..%2fTweety", "files/Tweety", "log?Tweety=1"} {
			s.answer("/v1/runs/" + record.ID + "/" + path)
		}
	}
	_, err = s.submit(s.t.Context(), client.Submission{Unit: "editor", Input: messageInput("x"), Project: func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat(mcpCanary, 1000))
		return err
	}})
	if err == nil {
		s.t.Error("what isn't an archive was taken")
	}
}

// singToTheFaces sends what is refused.
func (s *server) singToTheFaces() {
	s.t.Helper()
	for _, body := range []string{`{"Tweety":1}`, `{"unit":"lives","session":"Tweety","input":{"Tweety":1}}`, `{"unit":"Tweety","input":{}}`, `{"unit":"editor","input":{"message":"-Tweety","Tweety":1}}`, `Tweety`} {
		for _, path := range []string{"/v1/runs", "/v1/sessions", "/v1/sessions/Tweety/messages", "/v1/questions/Tweety/answer"} {
			request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url()+path+"?Tweety=Tweety", strings.NewReader(body))
			if err != nil {
				s.t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+s.token)
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Idempotency-Key", "Tweety")
			if response, err := http.DefaultClient.Do(request); err == nil {
				response.Body.Close()
			}
		}
	}
	for _, path := range []string{"/v1/sessions/Tweety", "/v1/sessions?unit=Tweety&after=Tweety", "/v1/questions?run=Tweety", "/v1/units/Tweety", "/v1/runs/Tweety/changes", "/Tweety"} {
		s.answer(path)
	}
}

// messageInput is the input of a message.
func messageInput(text string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"message": text}) // a text can be written
	return raw
}
