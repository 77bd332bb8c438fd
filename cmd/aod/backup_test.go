package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

// command runs one over the server's data directory.
func (s *server) command(args ...string) (said string, code int) {
	s.t.Helper()
	if s.inside != nil {
		code, out, told := command(s.t, s.t.Context(), append([]string{"--data", s.data}, args...)...)
		return out + told, code
	}
	return runAOD(s.t, s.data, args...)
}

func runAOD(t *testing.T, data string, args ...string) (said string, code int) {
	t.Helper()
	cmd := exec.Command("aod", append([]string{"--data", data}, args...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (s *server) mustDo(args ...string) {
	s.t.Helper()
	if said, code := s.command(args...); code != 0 {
		s.t.Fatalf("aod %s: %d, %s", strings.Join(args, " "), code, said)
	}
}

// records are all runs of a server, by id.
func (s *server) records() map[string]api.Record {
	s.t.Helper()
	all := map[string]api.Record{}
	for listed, err := range s.client.Runs.List(s.t.Context(), api.Filter{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		record, err := s.client.Runs.Get(s.t.Context(), listed.ID)
		if err != nil {
			s.t.Fatal(err)
		}
		all[listed.ID] = record
	}
	return all
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.addFlow("count", "", countFlow)
	s.start()
	id := s.call("count", "{}")
	s.await(id)
	dir := t.TempDir()
	file := filepath.Join(dir, "aod.tar.gz")
	s.mustDo("backup", file)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	refuses := func(name, want string, content []byte, data string, args ...string) {
		t.Helper()
		bad := filepath.Join(dir, "bad")
		write(t, string(content), bad)
		said, code := runAOD(t, data, append([]string{"restore", bad}, args...)...)
		if code == 0 || !strings.Contains(said, want) {
			t.Errorf("%s: %d, %s", name, code, said)
		}
	}
	refuses("while a server runs", "a server runs over", whole, s.data, "--force")
	s.signal(syscall.SIGTERM)
	s.exitCode()
	refuses("over runs", "--force moves it aside", whole, s.data)
	elsewhere := t.TempDir()
	refuses("a part of a file", "a whole backup", whole[:len(whole)/2], elsewhere)
	refuses("another file", "a whole backup", []byte("hello"), elsewhere)
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) != 0 {
		t.Errorf("what was refused has left %v, %v", entries, err)
	}

	s.mustDo("restore", "--force", file)
	s.start() // with the token that it had
	if record, err := s.client.Runs.Get(t.Context(), id); err != nil || record.Outcome != api.Success {
		t.Errorf("%+v, %v", record, err)
	}
	if aside, _ := filepath.Glob(s.home() + ".before-*"); len(aside) != 1 {
		t.Errorf("moved aside: %v", aside)
	}
}
