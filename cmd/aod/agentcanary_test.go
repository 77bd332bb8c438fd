package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// canaryTalker says the word wherever its protocol has room for one.
const canaryTalker = `import json, sys
def out(**line): print(json.dumps(line), flush=True)
out(type="system", subtype="init", session_id="Tweety")
print("Tweety", flush=True)
print("Tweety", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "user": continue
    text = message["message"]["content"][0]["text"]
    out(type="assistant", message={"content": [{"type": "text", "text": "Tweety"}, {"type": "thinking", "thinking": "Tweety"},
        {"type": "tool_use", "name": "Tweety", "id": "Tweety", "input": {"Tweety": "Tweety"}}, {"type": "Tweety"}]})
    out(type="Tweety", subtype="Tweety")
    out(type="control_request", request_id="Tweety-hook", request={"subtype": "Tweety"})
    print('{"Tweety', flush=True)
    out(type="control_request", request_id="Tweety-" + text, request={"subtype": "can_use_tool", "tool_name": "Tweety", "input": {"path": "/Tweety/sk-Tweety0123456789abcdef"}})
    answer = json.loads(sys.stdin.readline())
    if "die" in text: sys.exit(9)
    if "fail" in text: out(type="result", subtype="error_Tweety", is_error=True, result="Tweety", session_id="Tweety")
    else: out(type="result", subtype="Tweety", result="Tweety " + text, session_id="Tweety", usage={"Tweety": 1}, total_cost_usd=0.5)
`

const canaryEditor = `echo Tweety; echo Tweety >&2
echo Tweety > Tweety.new; echo Tweety >> Tweety.txt; rm dir-Tweety/Tweety.md
ln -s /Tweety Tweety.link; mkdir .git; echo Tweety > .git/Tweety
[[ $(cat) != *fail* ]] || exit 3
`

// No message, answer, key, file name or path of a workspace is in a log, a metric or a span.
func TestNoCanarySingsOfAnAgent(t *testing.T) {
	t.Parallel()
	collected, address := newCollector(t)
	s := newServer(t, "--log-level", "debug", "--log-format", "json", "--concurrency", "2")
	s.env = append(s.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+address)
	s.addCanaries()
	s.start()
	s.singInASession("singer")
	s.singInASession("rester")
	s.singOverAProject()
	s.singToTheFaces()
	_, metrics := s.answer("/metrics")
	testkit.Eventually(t, "its spans come", func() bool { return strings.Contains(collected.text(), "run") })
	s.kill() // what recovery says, too
	s.start()
	s.signal(syscall.SIGTERM) // its last spans leave with it
	s.exitCode()
	for where, text := range map[string]string{"the log": s.log(), "the metrics": metrics, "a span": collected.text()} {
		for line := range strings.Lines(text) {
			if strings.Contains(strings.ToLower(line), "tweety") || strings.Contains(line, s.token) {
				t.Errorf("%s has it: %.500s", where, line)
			}
		}
	}
	if !strings.Contains(metrics, "aod_runs_total") || !strings.Contains(s.log(), `"msg":"run finished"`) || !strings.Contains(collected.text(), "run") {
		t.Error("log, metrics or spans say nothing at all")
	}
}

func (s *server) addCanaries() {
	s.t.Helper()
	for name, more := range map[string]string{"singer": keptAlive, "rester": resumable + keptAlive} {
		write(s.t, canaryTalker, s.units, name, "talk.py")
		write(s.t, "FROM aod/base\nCOPY talk.py /talk.py\n", s.units, name, "Dockerfile")
		write(s.t, "name: "+name+"\nkind: agent\nagent:\n  command: [python3, -u, /talk.py]\n  mode: interactive\n  protocol: stream-json\n  approval: ask\n"+more, s.units, name, "agent.yaml")
	}
	write(s.t, "name: editor\nkind: agent\nimage: "+dockertest.Image+"\naccess: read-write\nagent: {command: [bash, -c, "+fmt.Sprintf("%q", canaryEditor)+"], dir: /workspace/project}\n", s.units, "editor", "agent.yaml")
}

// singInASession has turns that end well, fail, are stopped, and end with the program.
func (s *server) singInASession(unit string) {
	s.t.Helper()
	session := s.converse(unit)
	for i, text := range []string{"Tweety sk-Tweety0123456789abcdef", "fail Tweety", "stop Tweety", "die Tweety"} {
		id := s.say(session, text)
		s.removeLater(s.until(id, "runs", running).Image.Ref)
		question := ""
		testkit.Eventually(s.t, "it asks", func() bool {
			for q, err := range s.client.Questions(context.Background(), id) {
				if err == nil && strings.Contains(q.Text, mcpCanary) {
					question = q.ID
				}
			}
			return question != ""
		})
		ctx := s.t.Context()
		if err := s.client.Answer(ctx, question, api.Answer{Action: mcpCanary, Note: mcpCanary}); err == nil {
			s.t.Error("an answer that there isn't was taken")
		}
		if i == 2 {
			_, _ = s.client.Cancel(ctx, id, mcpCanary)
		} else if err := s.client.Answer(ctx, question, api.Answer{Action: "allow", By: mcpCanary, Note: mcpCanary}); err != nil {
			s.t.Error(err)
		}
		if r := s.await(id); i == 0 && !strings.HasPrefix(string(r.Output), `{"text":"Tweety Tweety ****`) {
			s.t.Errorf("%s %+v", r.Output, r.Error)
		}
	}
	_, _ = s.client.CloseSession(s.t.Context(), session)
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
		s.t.Error("what is no archive was taken")
	}
}

// singToTheFaces sends what is refused.
func (s *server) singToTheFaces() {
	s.t.Helper()
	for _, body := range []string{`{"Tweety":1}`, `{"unit":"singer","session":"Tweety","input":{"Tweety":1}}`, `{"unit":"Tweety","input":{}}`, `{"unit":"editor","input":{"message":"-Tweety","Tweety":1}}`, `Tweety`} {
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
