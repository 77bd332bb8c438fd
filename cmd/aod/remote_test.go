package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

func write(t *testing.T, content string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in:\n%s", part, text)
		}
	}
}

func TestRunOnAServerLooksLikeRunHere(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	s.log = []string{"hello from there", "\x1b[2Jhostile\x07"}
	s.events = []string{
		`state {"state":"running","at":"2026-01-02T03:04:05Z"}`, `warning {"message":"mind the\u001b[2J gap"}`,
		`build {"step":"1","name":"[1/1] RUN true","state":"done"}`, `unknown {"x":1}`,
		`attempt {"number":1,"outcome":"system_error","error":{"message":"engine\u001b[2J away"},"retry_in_ms":2000}`,
	}
	s.addFile("deep/copy.txt", "some content")
	code, stdout, stderr := command(t, t.Context(), "run", "hello", "--set", "n=3", "--timeout", "5s", "--server", s.URL)
	if code != 0 || stdout != `{"n":3}`+"\n" {
		t.Errorf("code %d, stdout %q, stderr %s", code, stdout, stderr)
	}
	file := filepath.Join("aod-output", fakeID, "deep", "copy.txt")
	contains(t, stderr, "hello | hello from there\n", "warning: mind the", "✓ [1/1] RUN true", file+" 12 B\n",
		"attempt 1 failed, the next one begins in 2s: engine")
	if strings.ContainsAny(stderr, "\x1b\x07") {
		t.Errorf("a control character came through: %q", stderr)
	}
	if raw, err := os.ReadFile(file); err != nil || string(raw) != "some content" {
		t.Errorf("the file holds %q, %v", raw, err)
	}
	requests, bodies := s.seen()
	if diff := cmp.Diff([]string{"POST /v1/runs"}, requests); diff != "" {
		t.Error(diff)
	}
	if want := `{"unit":"hello","input":{"n":3},"timeout":"5s"}`; bodies[0] != want {
		t.Errorf("sent %s, want %s", bodies[0], want)
	}
}

func TestRunOnAServerWithFiles(t *testing.T) {
	work, _ := alone(t)
	s := newFakeServer(t)
	s.addFile("copy.txt", "x")
	write(t, "the document", work, "in", "doc.txt")
	code, stdout, stderr := command(t, t.Context(), "-q", "run", "hello", "-s", "n=3", "-f", "doc=in/doc.txt", "-o", "result", "--json", "--server", s.URL)
	if code != 0 || stderr != "" {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	contains(t, stdout, `"outcome":"success"`, `"path":"`+filepath.Join(work, "result", "copy.txt")+`"`)
	if _, bodies := s.seen(); bodies[0] != `unit()=hello;input()={"n":3};doc(doc.txt)=the document;` {
		t.Errorf("sent %s", bodies[0])
	}
}

func TestRunOnAServerEndsAsTheRunDid(t *testing.T) {
	alone(t)
	code := func(n int) *int { return &n }
	for _, c := range []struct {
		outcome api.Outcome
		code    *int
		want    int
	}{
		{api.CapsuleError, code(7), 7},
		{api.TimedOut, code(143), 124},
		{api.SystemError, nil, 125},
	} {
		s := newFakeServer(t)
		s.record.Outcome, s.record.ExitCode, s.record.Output = c.outcome, c.code, nil
		s.record.Error = &api.RunError{Kind: "k", Message: "it went wrong\x1b", Hint: "do \x1b other"}
		got, stdout, stderr := command(t, t.Context(), "run", "hello", "--server", s.URL)
		if got != c.want || stdout != "" {
			t.Errorf("%s: code %d, want %d; stdout %q", c.outcome, got, c.want, stdout)
		}
		contains(t, stderr, "hello: it went wrong", "hint: do")
		if strings.Contains(stderr, "\x1b") {
			t.Errorf("a control character came through: %q", stderr)
		}
	}
}

func TestWhatAServerIsNotAskedFor(t *testing.T) {
	work, _ := alone(t)
	s := newFakeServer(t)
	write(t, "x", work, "x")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a value of another type":     {[]string{"--set", "n=many"}, "expected integer"},
		"a file for no file field":    {[]string{"--file", "n=x"}, `its file fields are ["doc"]`},
		"a file that isn't there":     {[]string{"--file", "doc=none"}, "cannot read the file"},
		"keeping the run's directory": {[]string{"--keep"}, "the run's directory is the server's"},
		"an input that isn't JSON":    {[]string{"--input", "{"}, "not valid JSON"},
		"a time below nothing":        {[]string{"--timeout", "-1s"}, "must be positive"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := command(t, t.Context(), append([]string{"run", "hello", "--server", s.URL}, c.args...)...)
			if code != 2 {
				t.Errorf("code %d", code)
			}
			contains(t, stderr, c.want)
			if requests, _ := s.seen(); len(requests) > 0 {
				t.Errorf("it was asked for %v", requests)
			}
		})
	}
	code, _, stderr := command(t, t.Context(), "run", "hello", "--detach")
	if code != 2 {
		t.Errorf("code %d", code)
	}
	contains(t, stderr, "aod serve")
}

func TestDetachLeavesTheRunAlone(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	s.hold = make(chan struct{}) // it never ends
	code, stdout, _ := command(t, t.Context(), "run", "hello", "--detach", "--server", s.URL)
	if code != 0 || stdout != fakeID+"\n" {
		t.Errorf("code %d, stdout %q", code, stdout)
	}
}

func TestADirectoryIsUploadedWithItsDefinition(t *testing.T) {
	work, _ := alone(t)
	s := newFakeServer(t)
	dir := filepath.Join(work, "my-capsule")
	write(t, "FROM debian:trixie-slim\nCMD [\"true\"]\n", dir, "Dockerfile")
	write(t, `{"input":{"type":"object"},"output":{"type":"object"}}`, dir, "schema.json")
	write(t, "name: hello\n", dir, "agent.yaml")
	write(t, "[]\n", dir, "tools.yaml")
	write(t, "schema.json\nsecret\n", dir, ".dockerignore")
	write(t, "key", dir, "secret")
	write(t, "code", dir, "src", "main.py")
	code, stdout, stderr := command(t, t.Context(), "run", "./my-capsule", "--server", s.URL)
	if code != 0 || stdout != `{"n":3}`+"\n" {
		t.Errorf("code %d, stdout %q", code, stdout)
	}
	contains(t, stderr, "uploading hello to "+s.URL+"\n")
	requests, bodies := s.seen()
	if diff := cmp.Diff([]string{"PUT /v1/units/hello", "POST /v1/runs"}, requests); diff != "" {
		t.Fatal(diff)
	}
	if want := "schema.json .dockerignore Dockerfile agent.yaml src/ src/main.py tools.yaml"; bodies[0] != want {
		t.Errorf("uploaded %s, want %s", bodies[0], want)
	}
	code, _, stderr = command(t, t.Context(), "run", "./none", "--server", s.URL)
	if code != 2 {
		t.Errorf("code %d", code)
	}
	contains(t, stderr, "there is no capsule")
}

func TestNoFileLandsOutsideItsDirectory(t *testing.T) {
	work, _ := alone(t)
	for _, name := range []string{"../evil", "/tmp/evil", "a/../../evil"} {
		s := newFakeServer(t)
		s.addFile(name, "x")
		code, stdout, stderr := command(t, t.Context(), "run", "hello", "-o", "out", "--server", s.URL)
		if code != 125 || stdout != "" {
			t.Errorf("%s: code %d, stdout %q", name, code, stdout)
		}
		contains(t, stderr, "is it a server that you trust?")
	}
	if entries, _ := os.ReadDir(work); len(entries) > 0 {
		t.Errorf("left %v", entries)
	}
}

func TestWhichServerAndWhichToken(t *testing.T) {
	work, data := alone(t)
	s, other := newFakeServer(t), newFakeServer(t)
	code, _, stderr := command(t, t.Context(), "ps")
	if code != 125 {
		t.Errorf("code %d", code)
	}
	contains(t, stderr, "no server runs on the data directory", "aod serve", "--server URL")

	write(t, s.URL+"\n", data, "server", "address")
	write(t, "local\n", data, "server", "token")
	t.Run("a server that died, and whose port another one has", func(t *testing.T) {
		for _, args := range [][]string{{"ps"}, {"ps", "--server", s.URL}} {
			_, _, _ = command(t, t.Context(), args...)
		}
		if s.tokens["Bearer local"] {
			t.Error("the other one was sent the token")
		}
	})
	alive, err := safefs.Lock(filepath.Join(data, "server", layout.Lock))
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	write(t, "given", work, "token")
	write(t, "", work, "empty")
	for name, c := range map[string]struct {
		server, env string
		args        []string
		want        string
	}{
		"the server of the data directory":          {server: s.URL, want: "Bearer local"},
		"the same one by its name":                  {server: s.URL, args: []string{"--server", strings.Replace(s.URL, "127.0.0.1", "localhost", 1)}, want: "Bearer local"},
		"another one doesn't get its token":         {server: other.URL, args: []string{"--server", other.URL}, want: ""},
		"a file that was named":                     {server: other.URL, args: []string{"--server", other.URL, "--token-file", "token"}, want: "Bearer given"},
		"the environment's comes before all others": {server: other.URL, env: "mine", args: []string{"--server", other.URL, "--token-file", "token"}, want: "Bearer mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AOD_TOKEN", c.env)
			asked := map[string]*fakeServer{s.URL: s, other.URL: other}[c.server]
			asked.tokens = map[string]bool{}
			if code, _, stderr := command(t, t.Context(), append([]string{"ps"}, c.args...)...); code != 0 {
				t.Fatalf("code %d: %s", code, stderr)
			}
			if diff := cmp.Diff(map[string]bool{c.want: true}, asked.tokens); diff != "" {
				t.Error(diff)
			}
		})
	}
	code, _, stderr = command(t, t.Context(), "ps", "--token-file", "empty")
	if code != 2 {
		t.Errorf("code %d", code)
	}
	contains(t, stderr, "holds no token")
}
