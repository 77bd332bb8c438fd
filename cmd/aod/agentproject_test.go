package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// addEditor adds a unit whose sessions work on a project, in one container or in one for each turn.
func (s *server) addEditor(name, access string, alive bool) {
	s.t.Helper()
	s.runs(name, editInside)
	write(s.t, "FROM aod/base\n", s.units, name, "Dockerfile")
	how := "  command: [python3, -u, /edit.py]\n  protocol: stream-json\n" + resumable + "session: {keep_alive: true}\n"
	if !alive {
		how = "  command: [python3, -u, /edit.py, \"{message}\"]\n  input: args\n  result: {format: json, text: /text}\n"
	}
	write(s.t, "name: "+name+"\nkind: agent\n"+access+"limits: {timeout: 60s}\nagent:\n  mode: interactive\n  dir: /workspace/project\n"+how, s.units, name, "agent.yaml")
}

func (s *server) converseOn(unit, dir string) string {
	s.t.Helper()
	project, err := workspace.Scan(s.t.Context(), dir, workspace.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	session, err := s.client.Sessions.Create(s.t.Context(), unit, project.WriteTar)
	if err != nil {
		s.t.Fatal(err)
	}
	return session.ID
}

// linkedProject makes a project with two files and a link to one of them.
func linkedProject(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, "one\n", dir, "a.txt")
	write(t, "two\n", dir, "sub", "b.txt")
	if err := os.Symlink("sub/b.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestASessionWorksOnAProject(t *testing.T) {
	t.Parallel()
	for name, alive := range map[string]bool{"in one container": true, "in one for each turn": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workOnAProject(t, alive)
		})
	}
}

func workOnAProject(t *testing.T, alive bool) {
	s := newInside(t)
	s.addEditor("editor", "access: read-write\n", alive)
	s.start()
	dir := linkedProject(t)
	session := s.converseOn("editor", dir)
	first := s.hears(session, "append a.txt", "/workspace/project; a.txt link sub/b.txt; ")
	if c := first.Changes; c == nil || c.Files != 1 || c.Partial {
		t.Errorf("the first turn's changes: %+v", c)
	}
	slow := s.say(session, "slow")
	s.awaitLine(slow, "began")
	s.kill()
	s.start()
	s.replied(s.await(slow), "/workspace/project; a.txt link slow.txt sub/b.txt; ")
	third := s.hears(session, "append slow.txt", "/workspace/project; a.txt link slow.txt sub/b.txt; ")
	if c := third.Changes; c == nil || c.Files != 2 {
		t.Errorf("the third turn's changes: %+v", c)
	}
	if got := s.aod("diff", session); !strings.Contains(got, "M a.txt 9 B\n") || !strings.Contains(got, "A slow.txt 10 B\n") {
		t.Errorf("diff says %q", got)
	}
	if got := s.aod("diff", first.ID, "--stat"); !strings.Contains(got, "1 change:") {
		t.Errorf("diff of the first turn says %q", got)
	}
	if status, body := s.answer("/v1/sessions/" + session + "/changes/files/slow.txt"); status != 200 || body != "slow\nmore\n" {
		t.Errorf("%d %q", status, body)
	}
	if status, body := s.answer("/v1/sessions/" + session + "/changes.patch"); status != 200 || !strings.Contains(body, "+++ b/slow.txt") {
		t.Errorf("%d %q", status, body)
	}
	for _, at := range []string{"/v1/sessions/" + session, "/v1/runs/" + third.ID} {
		at += "/changes.patch?file="
		status, body := s.answer(at + "slow.txt")
		if status != 200 || !strings.HasPrefix(body, "diff --git a/slow.txt") || strings.Contains(body, "a/a.txt") {
			t.Errorf("%d %q", status, body)
		}
		for name, want := range map[string]int{"sub/b.txt": 404, "../a.txt": 400} {
			if status, body := s.answer(at + name); status != want {
				t.Errorf("%s: %d %s", name, status, body)
			}
		}
	}
	s.aod("apply", session, "--dir", dir)
	s.aod("diff", session)
	s.hears(session, "append a.txt", "/workspace/project; a.txt link slow.txt sub/b.txt; ")
	s.aod("apply", session, "--dir", dir) // what was applied has changed once more
	holds(t, dir, map[string]string{"a.txt": more("one", 2), "slow.txt": more("slow", 1), "sub/b.txt": "two\n"})
	s.hears(session, "remove sub/b.txt", "/workspace/project; a.txt link slow.txt; ")
	s.aod("apply", session, "--dir", dir) // only what is new
	holds(t, dir, map[string]string{"a.txt": more("one", 2), "slow.txt": more("slow", 1)})
	if said, code := s.command("apply", session, "--dir", dir); code != 0 || !strings.Contains(said, "applied already") {
		t.Errorf("a second apply: %d %s", code, said)
	}
	s.restored(func(after *server) {
		after.hears(session, "append a.txt new", "/workspace/project; a.txt link new slow.txt; ")
		if got := after.aod("diff", session); !strings.Contains(got, "M a.txt 19 B\n") || !strings.Contains(got, "D sub/b.txt") || !strings.Contains(got, "A new") {
			t.Errorf("from the backup: %q", got)
		}
		_, _ = after.client.Sessions.Close(t.Context(), session)
	})
	s.endSession(session)
	if got := s.aod("diff", session, "--stat"); !strings.Contains(got, "3 changes") {
		t.Errorf("diff of the closed session says %q", got)
	}
}

// restored does something with a server that goes on from a backup of this one.
func (s *server) restored(do func(*server)) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "aod.tar.gz")
	s.mustDo("backup", file)
	after := newInside(s.t, s.flags...)
	after.units, after.inside.programs = s.units, s.inside.programs
	after.mustDo("restore", file, "--force")
	write(s.t, after.token, after.home(), "token")
	after.start()
	do(after)
}

// more is a file of a line to which so many others were appended.
func more(line string, n int) string { return line + "\n" + strings.Repeat("more\n", n) }

// holds wants the files of a directory to be these.
func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		raw, err := os.ReadFile(path)
		if content, wanted := want[name]; !wanted || content != string(raw) {
			t.Errorf("%s holds %q", name, raw)
		}
		delete(want, name)
		return err
	})
	if err != nil || len(want) > 0 {
		t.Errorf("missing %v, %v", want, err)
	}
}

func TestASessionThatMayOnlyReadItsProject(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addEditor("reader", "", true)
	s.addEditor("shared", "access: read-write\n", true)
	s.start()
	dir := t.TempDir()
	write(t, "one\n", dir, "a.txt")
	session := s.converseOn("reader", dir)
	if r := s.await(s.say(session, "append a.txt")); r.Outcome == api.Success || r.Changes != nil {
		t.Errorf("%s %+v", r.Outcome, r.Changes)
	}
	if status, body := s.answer("/v1/sessions/" + session + "/changes"); status != 404 || !strings.Contains(body, "has no changes") {
		t.Errorf("%d %s", status, body)
	}
	project, err := workspace.Scan(t.Context(), dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	other := s.converse("shared")
	turn := message(other, "append a.txt")
	turn.Project = project.WriteTar
	if _, err := s.client.Runs.Submit(t.Context(), turn); !fault.Is(err, fault.Input) || !strings.Contains(err.Error(), "no workspace of its own") {
		t.Errorf("a turn with a workspace: %v", err)
	}
	for _, id := range []string{session, other} {
		_, _ = s.client.Sessions.Close(t.Context(), id)
	}
	record, err := s.client.Runs.Submit(t.Context(), client.Submission{Unit: "shared", Input: []byte(`{"message":"append a.txt"}`), Project: project.WriteTar})
	if err != nil {
		t.Fatal(err)
	}
	if record = s.await(record.ID); record.Changes == nil || record.Changes.Files != 1 {
		t.Errorf("one turn alone: %s %+v %+v", record.Outcome, record.Changes, record.Error)
	}
}

func TestFilesThatATurnLeavesAreItsOwn(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addEditor("editor", "access: read-write\n", true)
	s.start()
	session := s.converseOn("editor", t.TempDir())
	first := s.hears(session, "out one.txt two.txt", "/workspace/project; ; one.txt two.txt")
	second := s.hears(session, "append a.txt", "/workspace/project; a.txt; ")
	s.kill()
	s.start()
	third := s.hears(session, "out three.txt", "/workspace/project; a.txt; three.txt")
	for want, record := range map[string]api.Record{"one.txt": first, "three.txt": third} {
		if raw, err := s.file(record, want); err != nil || string(raw) != "for "+want {
			t.Errorf("turn %d: %q, %v", record.Turn, raw, err)
		}
	}
	if len(first.Files) != 2 || len(second.Files) != 0 || len(third.Files) != 1 {
		t.Errorf("%v, %v, %v", first.Files, second.Files, third.Files)
	}
	s.endSession(session)
}

func TestACallerSaysHowAnAgentStarts(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	write(t, "FROM "+dockertest.Image+"\n", s.units, "where", "Dockerfile")
	write(t, "name: where\nkind: agent\nagent:\n  command: [bash, -c, 'echo \"$PWD $WORD {dir}\"']\n  dir: /workspace/project\n"+
		"  env: {WORD: own}\n  caller_env: [WORD]\n", s.units, "where", "agent.yaml")
	s.runs("where", whereInside)
	s.start()
	dir := t.TempDir()
	write(t, "x", dir, "sub", "x.txt")
	project, err := workspace.Scan(t.Context(), dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sub := client.Submission{Unit: "where", Input: []byte(`{"message":"x"}`), Project: project.WriteTar, Key: "k"}
	said := func(sub client.Submission) string {
		t.Helper()
		record, err := s.client.Runs.Submit(t.Context(), sub)
		if err != nil {
			return err.Error()
		}
		record = s.await(record.ID)
		if record.Error != nil {
			return record.Error.Message
		}
		return string(record.Output)
	}
	for _, c := range []struct{ word, dir, want string }{
		{"", "", `{"text":"/workspace/project own /workspace/project"}`},
		{"theirs", "sub", `"text":"/workspace/project/sub theirs /workspace/project/sub"}`},
		{"", "none", "the workspace has no directory"},
		{"", "../..", "isn't a directory below"},
		{"sk-0123456789abcdef", "", "looks like a secret"},
	} {
		one := sub
		if one.Key, one.Dir = c.word+c.dir, c.dir; c.word != "" {
			one.Env = map[string]string{"WORD": c.word}
		}
		if got := said(one); !strings.Contains(got, c.want) {
			t.Errorf("%q in %q: %s, want %s", c.word, c.dir, got, c.want)
		}
	}
	one := client.Submission{Unit: "where", Input: sub.Input, Env: map[string]string{"WORD": "a"}, Key: "same"}
	if got := said(one); got != `{"text":"/workspace/project a /workspace/project"}` {
		t.Errorf("as JSON: %s", got)
	}
	one.Env = map[string]string{"WORD": "b"}
	if got := said(one); !strings.Contains(got, "idempotency key") {
		t.Errorf("another word with the same key: %s", got)
	}
	one.Env, one.Key = map[string]string{"PATH": "/tmp"}, ""
	if got := said(one); !strings.Contains(got, `no say in "PATH"`) {
		t.Errorf("another name: %s", got)
	}
	code, stdout, stderr := command(t, t.Context(), "agent", "run", filepath.Join(s.units, "where"), "-m", "x", "--env", "WORD=cli", "--dir", "sub", "--workspace", dir)
	if code != 0 || stdout != "/workspace/project/sub cli /workspace/project/sub\n" {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}
