package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/programtest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// server is `aod serve` as a process of its own, over a data directory that outlives it.
// It listens at the same address after each start.
type server struct {
	t       *testing.T
	engine  wholeEngine
	inside  *inside // its process, if it is in this one; nil: one of its own
	program string  // this very program, with whatever the tests were built with
	data    string
	units   string // a directory of units, see addWorker
	address string
	flags   []string
	env     []string // beside our own
	client  *client.Client
	token   string
	web     *http.Client // asks it; with a transport of its own it speaks TLS
	bad     *badDisk     // below its home; nil: a good one

	process *exec.Cmd
	ended   chan struct{} // closed when the process has
	logged  int           // where its log begins in that of all
	images  []string      // to be removed at the end
}

// wholeEngine is what a test asks of the engine beside the server.
type wholeEngine interface {
	container.Engine
	VolumesByLabel(ctx context.Context, labels map[string]string) ([]runtime.VolumeRef, error)
	RemoveVolume(ctx context.Context, name string) error
}

// newServer returns a server that is not started yet. Nothing of it may be left at the end.
func newServer(t *testing.T, flags ...string) *server {
	t.Helper()
	return newServerOn(t, dockertest.Require(t), flags...)
}

func newServerOn(t *testing.T, engine wholeEngine, flags ...string) *server {
	t.Helper()
	s := &server{
		t: t, engine: engine, program: "aod", data: t.TempDir(), units: t.TempDir(),
		address: programtest.FreeAddress(t), flags: flags, token: strings.Repeat("token-", 8), web: http.DefaultClient,
	}
	write(t, s.token, s.home(), "token")
	var err error
	if s.client, err = client.New(client.Options{Server: s.url(), Token: s.token}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

func (s *server) url() string {
	if s.web.Transport != nil {
		return "https://" + s.address
	}
	return "http://" + s.address
}

func (s *server) home() string { return filepath.Join(s.data, "server") }

// begin starts the process and doesn't wait until it answers.
func (s *server) begin() {
	s.t.Helper()
	s.logged = len(s.log())
	log, err := os.OpenFile(s.logFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	args := append([]string{"serve", "--data", s.data, "--units", s.units, "--listen", s.address}, s.flags...)
	if s.inside != nil {
		s.ended = s.inside.begin(log, args)
		return
	}
	defer log.Close()
	process := exec.Command(s.program, args...)
	process.Env = append(os.Environ(), s.env...)
	process.Stdout, process.Stderr = log, log
	start := process.Start
	if s.bad != nil {
		start = func() error { return s.bad.start(process) }
	}
	if err := start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	hangs := time.AfterFunc(longestLife, func() { _ = process.Process.Signal(syscall.SIGQUIT) })
	go func() {
		defer close(ended)
		defer hangs.Stop()
		_ = process.Wait() // how it ended is in its state
	}()
	s.process, s.ended = process, ended
}

func (s *server) logFile() string { return filepath.Join(s.data, "serve.log") }

func (s *server) log() string {
	raw, _ := os.ReadFile(s.logFile())
	return string(raw)
}

// start starts the process and returns when it answers.
func (s *server) start() {
	s.t.Helper()
	s.begin()
	s.ready()
}

func (s *server) ready() {
	s.t.Helper()
	testkit.Eventually(s.t, "the server answers", func() bool {
		select {
		case <-s.ended:
			s.t.Fatalf("the server has ended with %d:\n%s", s.exitCode(), s.log())
		default:
		}
		return s.status("/healthz") == http.StatusOK
	})
}

// status asks for a path and returns the answer's status; 0 isn't an answer.
func (s *server) status(path string) int {
	response, err := s.get(context.Background(), path, nil)
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

func (s *server) get(ctx context.Context, path string, header map[string]string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	return s.web.Do(request)
}

// kill ends the process as a power cut would. One that is in this process ends in order, but leaves its
// runs to the next one.
func (s *server) kill() {
	if s.inside != nil {
		s.inside.stop()
		<-s.ended
		return
	}
	_ = s.process.Process.Kill() // it may have ended
	<-s.ended
}

func (s *server) signal(signal syscall.Signal) {
	s.t.Helper()
	if s.inside != nil {
		s.inside.stop()
		return
	}
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// exitCode waits for the process's end.
func (s *server) exitCode() int {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(testkit.Patience):
		s.t.Fatalf("the server doesn't end:\n%s", s.log())
	}
	if s.inside != nil {
		return s.inside.code
	}
	return s.process.ProcessState.ExitCode()
}

// await returns a run at its very end.
func (s *server) await(id string) api.Record {
	s.t.Helper()
	return s.until(id, "is over", over)
}

func (s *server) until(id, what string, is func(api.Record) bool) (record api.Record) {
	s.t.Helper()
	testkit.Eventually(s.t, "run "+id+" "+what, func() bool {
		var err error
		if record, err = s.client.Runs.Get(context.Background(), id); err != nil {
			return false
		}
		return is(record)
	})
	return record
}

// awaitLine returns when a run has written a line.
func (s *server) awaitLine(id, line string) {
	s.t.Helper()
	s.awaitEntry(id, fmt.Sprintf("%q", line), func(e api.LogEntry) bool { return e.Text == line })
}

// awaitEntry returns when a run has an entry in its log.
func (s *server) awaitEntry(id, what string, is func(api.LogEntry) bool) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), testkit.Patience)
	defer stop()
	for entry, err := range s.client.Runs.Log(ctx, id, api.LogFilter{Follow: true}) {
		if err != nil {
			s.t.Fatal(err)
		}
		if is(entry) {
			return
		}
	}
	s.t.Fatalf("run %s never wrote %s", id, what)
}

func over(r api.Record) bool {
	last := len(r.Transitions) - 1
	return r.Outcome != "" && r.Transitions[last].State == api.Idle
}

func running(r api.Record) bool { return r.State == api.Running }

// longestLife is more than any test here has a server for. One that is still there hangs: it ends, with
// the stacks of its goroutines in its log, and its test fails by its name.
const longestLife = 30 * time.Minute

// patienceTime is far more than anything takes that works.
const patienceTime = 60 * time.Second
