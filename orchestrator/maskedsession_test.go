package orchestrator

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// leakySession tells a secret in two events and in two lines, and asks with one.
const leakySession = `
say() { printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]}}\n' "$1"; }
while read -r line; do
	say 'the key is sk-abcintwo'; say 'pieces0123456789 and'
	printf '%s\n' '-----BEGIN PRIVATE KEY-----' MIIBPEMCANARY >&2
	printf '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"key":"sk-proj-inthemessage0123456789"}}}\n'
	read -r answer
	printf '%s\n' '-----END PRIVATE KEY-----' after >&2
	say ' more of sk-proj-inthemessage'; say '0123456789'
	printf '{"type":"result","subtype":"success"}\n'
done
`

// cleanBut wants no canary in the files of the server, also not in the form in which JSON has
// bytes, but in those below some directories.
func (l *leaky) cleanBut(dirs ...string) {
	l.Helper()
	err := filepath.WalkDir(l.opts.Home, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(l.opts.Home, path)
		for _, dir := range append(dirs, layout.Units) {
			if strings.HasPrefix(rel, dir) {
				return nil
			}
		}
		if err != nil || !entry.Type().IsRegular() || entry.Name() == layout.TrueInput {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // the server goes on meanwhile
			return nil
		}
		l.clean(path, raw)
		for shift := range 3 { // of the bytes before it
			encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + canaryMessage))
			if strings.Contains(string(raw), encoded[4:len(encoded)-4]) {
				l.Errorf("%s has the message in base64", path)
			}
		}
		return err
	})
	if err != nil {
		l.Fatal(err)
	}
}

// What the program of a living session is told and tells is masked, wherever its pieces are cut,
// also by the end of the server. Only the files of the session itself have it, while it lives.
func TestALivingSessionIsMasked(t *testing.T) {
	t.Parallel()
	l := newLeaky(t)
	engine := dockertest.Require(t)
	write(t, filepath.Join(l.opts.Sources[0], "talks", "agent.yaml"), "name: talks\nkind: agent\nimage: "+dockertest.Image+
		"\nagent:\n  command: "+shell(leakySession)+"\n  mode: interactive\n  protocol: stream-json\n  approval: ask\nsession: {keep_alive: true}\n")
	if err := l.service.Close(); err != nil {
		t.Fatal(err)
	}
	l.start(engine)
	session, err := l.service.Sessions.Create(trusted.Context(t), "talks", nil)
	if err != nil {
		t.Fatal(err)
	}
	record, _, err := l.service.Submit(trusted.Context(t), spool.Submission{Session: session.ID, Input: encoded(message("key " + canaryMessage))})
	if err != nil {
		t.Fatal(err)
	}
	id := record.ID
	var asked api.Question
	l.until(id, func(api.Record) bool {
		page, err := l.service.Questions.List(trusted.Context(t), questions.Filter{Run: id})
		if err != nil || len(page.Questions) == 0 {
			return false
		}
		asked = page.Questions[0]
		return true
	})
	if want := "Write\n" + `{"key":"****6789"}`; asked.Text != want {
		t.Errorf("it asks %q, want %q", asked.Text, want)
	}
	live := "sessions/" + session.ID + "/"
	// The line of the log may come later than the question.
	l.until(id, func(api.Record) bool { return strings.Contains(l.shown(id), "[PEM block masked]") })
	l.cleanBut(live)
	if err := l.service.Close(); err != nil { // the next process goes on in the middle of the log's secret
		t.Fatal(err)
	}
	l.start(engine)
	if err := l.service.Questions.Answer(trusted.Context(t), asked.ID, api.Answer{Action: "allow"}); err != nil {
		t.Fatal(err)
	}
	record = l.until(id, func(r api.Record) bool { return r.Outcome != "" })
	l.until(id, func(api.Record) bool { return l.service.jobs.count() == 0 })
	shown := l.shown(id)
	l.clean("what is shown", []byte(shown))
	if want := `{"text":"the key is ****6789 and more of ****6789"}`; string(record.Output) != want {
		t.Errorf("%s, want %s: %+v", record.Output, want, record.Error)
	}
	// What a program logs right before its result may come after the turn's end.
	for _, want := range []string{`"text":"the "`, `"text":"more of ****6789"`, "[PEM block masked]\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in %s", want, shown)
		}
	}
	if n := strings.Count(shown, "[PEM block masked]"); n != 1 {
		t.Errorf("a line of the log is there %d times: %s", n, shown)
	}
	if files := l.trueInputs(); len(files) > 0 {
		t.Errorf("the true input stays: %v", files)
	}
	l.cleanBut(live)
	if _, _, err := l.service.Rerun(trusted.Context(t), id, "", api.Rerun{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a rerun of a masked turn: %v", err)
	}
	if _, err := l.service.Sessions.Close(trusted.Context(t), session.ID, "it is over"); err != nil {
		t.Fatal(err)
	}
	within(t, func() bool { _, err := os.Stat(filepath.Join(l.opts.Home, live)); return os.IsNotExist(err) }, func() string { return "the session's files stay" })
	l.cleanBut()
}

// A flow gets what is stored of its agent, which has the true input. The agent's run is masked as
// one by itself, and so it isn't run again.
func TestTheRunsOfAFlowsAgentsAreMasked(t *testing.T) {
	t.Parallel()
	l := newLeaky(t)
	dir := filepath.Join(l.opts.Sources[0], "asks")
	write(t, filepath.Join(dir, "agent.yaml"), "name: asks\nkind: flow\n")
	write(t, filepath.Join(dir, "flow.yaml"), "start: it\nnodes:\n  it: {run: says, with: {message: \"${{ 'sk-proj-inthe' + 'message0123456789' }}\"}, set: {gave: \"${{ out.text }}\"}, next: end}\noutput: {gave: \"${{ state.gave }}\"}\n")
	write(t, filepath.Join(dir, "schema.json"), `{"input": {"type": "object"}, "output": {"type": "object"}}`)
	if err := l.service.Close(); err != nil {
		t.Fatal(err)
	}
	l.start(dockertest.Require(t))
	id := l.submit("asks", "x")
	record := l.until(id, func(r api.Record) bool { return r.Outcome != "" })
	if want := `{"gave":"you said ****6789"}`; string(record.Output) != want {
		t.Errorf("%s, want %s: %+v", record.Output, want, record.Error)
	}
	page, err := l.service.Runs.List(trusted.Context(t), api.Filter{Unit: "says"})
	if err != nil || len(page.Runs) != 1 {
		t.Fatalf("%+v %v", page, err)
	}
	called := page.Runs[0].ID
	shown := l.shown(called)
	l.clean("what is shown of the agent's run", []byte(shown))
	if !strings.Contains(shown, `{"message":"****6789"}`) || !strings.Contains(shown, `"input_masked":true`) {
		t.Errorf("%s", shown)
	}
	if _, _, err := l.service.Rerun(trusted.Context(t), called, "", api.Rerun{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a rerun of it: %v", err)
	}
	l.until(id, func(api.Record) bool { return l.service.jobs.count() == 0 })
	l.cleanBut()
}
