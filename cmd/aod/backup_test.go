package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// command runs one over the server's data directory.
func (s *server) command(args ...string) (said string, code int) {
	s.t.Helper()
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
	for listed, err := range s.client.Runs(s.t.Context(), api.Filter{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		record, err := s.client.Run(s.t.Context(), listed.ID)
		if err != nil {
			s.t.Fatal(err)
		}
		all[listed.ID] = record
	}
	return all
}

func TestAKilledBackupLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.addWorker("worker", "")
	s.start()
	s.await(s.mustSubmit("worker", work{Mark: 1}))
	big := filepath.Join(t.TempDir(), "doc")
	write(t, strings.Repeat("0123456789abcdef", 1<<20), big) // 16 MiB
	record, err := s.submit(t.Context(), client.Submission{
		Unit: "worker", Input: work{Mark: 2}.input(), Files: []client.InputFile{{Field: "doc", Path: big}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.await(record.ID)
	dir := t.TempDir()
	file := filepath.Join(dir, "aod.tar.gz")
	s.mustDo("backup", file)
	var before []byte
	testkit.Eventually(t, "a backup is killed when a part of it is written, before which it may end", func() bool {
		if before, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		return s.killsBackup(file)
	})
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the old file has %d bytes instead of %d, %v", len(after), len(before), err)
	}
	s.mustDo("backup", file)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v", entries, err)
	}
}

// killsBackup begins a backup, and reports whether it was killed when a part of it was written.
func (s *server) killsBackup(file string) bool {
	s.t.Helper()
	part := filepath.Join(filepath.Dir(file), ".temp-"+filepath.Base(file), "archive")
	_ = os.Remove(part) // that of one that was killed before
	cmd := exec.Command("aod", "--data", s.data, "backup", file)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	isThere := func() bool {
		info, err := os.Stat(part)
		return err == nil && info.Size() > 0
	}
	for !isThere() {
		select {
		case err := <-ended:
			if err != nil {
				s.t.Fatalf("a backup that was left alone: %v", err)
			}
			return false
		case <-time.After(time.Millisecond):
		}
	}
	_ = cmd.Process.Kill() // it may have ended
	return <-ended != nil && isThere()
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.addWorker("worker", "")
	s.start()
	id := s.mustSubmit("worker", work{Mark: 1})
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
	refuses("a part of a file", "no whole backup", whole[:len(whole)/2], elsewhere)
	refuses("another file", "no whole backup", []byte("hello"), elsewhere)
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) != 0 {
		t.Errorf("what was refused has left %v, %v", entries, err)
	}

	s.mustDo("restore", "--force", file)
	s.start() // with the token that it had
	if record, err := s.client.Run(t.Context(), id); err != nil || record.Outcome != api.Success {
		t.Errorf("%+v, %v", record, err)
	}
	if aside, _ := filepath.Glob(s.home() + ".before-*"); len(aside) != 1 {
		t.Errorf("moved aside: %v", aside)
	}
}
