package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/programtest"
	"github.com/agent-on-demand/aod/testkit"
)

// AOD_CUT is for how long the engine is away, in seconds. The long form is:
// AOD_CUT=10 go test -race -run TestRunsOutlive ./cmd/aod
const usualCut = 3

func TestRunsOutliveTheEnginesAbsence(t *testing.T) {
	t.Parallel()
	cut := time.Duration(number(t, "AOD_CUT", usualCut)) * time.Second
	line := newEngineLine(t, "unix") // which is needed until the server has ended
	s := newServer(t, "--concurrency", "4", "--retry-delay", "100ms")
	s.env = []string{"DOCKER_HOST=" + line.host()}
	s.addWorker("worker", "")
	s.start()
	retries := 0
	for range 5 { // on a busy machine all runs may be over before the cut
		if retries = s.outlive(line, cut); retries > 0 {
			break
		}
	}
	if retries == 0 {
		t.Error("no run was tried again: has the engine been away?")
	}
	t.Logf("%d attempts were made again", retries)
}

// outlive has runs made while the engine is away for a time, and returns how often they were tried again.
func (s *server) outlive(line *engineLine, cut time.Duration) (retries int) {
	t := s.t
	t.Helper()
	var ids []string
	for i := range 12 { // some are running, some are being started, some wait
		ids = append(ids, s.mustSubmit("worker", work{Mark: i, Ticks: []int{20, 1, 5}[i%3]}))
	}
	s.until(ids[0], "runs or is over", func(r api.Record) bool { return running(r) || over(r) })

	line.cut()
	testkit.Eventually(t, "the server has noticed", func() bool { return s.status("/readyz") == http.StatusServiceUnavailable })
	for until := time.Now().Add(cut); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if alive, ready := s.status("/healthz"), s.status("/readyz"); alive != http.StatusOK || ready != http.StatusServiceUnavailable {
			t.Fatalf("without an engine, healthz says %d and readyz %d", alive, ready)
		}
	}
	late := s.mustSubmit("worker", work{Mark: 12}) // what is asked for meanwhile is done later
	line.join()
	testkit.Eventually(t, "the server is ready again", func() bool { return s.status("/readyz") == http.StatusOK })

	for i, id := range append(ids, late) {
		record := s.await(id)
		retries += record.Retries
		s.checkAttempts(record)
		if want := string(work{Mark: i}.input()); record.Outcome != api.Success || string(record.Output) != want {
			t.Errorf("run %d: %s %s %+v", i, record.Outcome, record.Output, record.Error)
		}
	}
	return retries
}

// AOD_CUTS is how often the way to the engine is cut at a random moment. The long form is:
// AOD_CUTS=40 go test -race -run TestACutAtAnyMoment ./cmd/aod
const usualCuts = 4

func TestACutAtAnyMomentIsTriedAgain(t *testing.T) {
	t.Parallel()
	line := newEngineLine(t, "unix") // which is needed until the server has ended
	s := newServer(t, "--concurrency", "4", "--retry-delay", "10ms", "--retries", "20")
	s.env = []string{"DOCKER_HOST=" + line.host()}
	s.addWorker("worker", "")
	s.start()
	for range number(t, "AOD_CUTS", usualCuts) {
		var ids []string
		for i := range 6 {
			ids = append(ids, s.mustSubmit("worker", work{Mark: i, Ticks: []int{2, 1, 3}[i%3]}))
		}
		time.Sleep(time.Duration(rand.IntN(700)) * time.Millisecond)
		line.cut()
		time.Sleep(100 * time.Millisecond)
		line.join()
		for i, id := range ids {
			record := s.await(id)
			s.checkAttempts(record)
			if want := string(work{Mark: i}.input()); record.Outcome != api.Success || string(record.Output) != want {
				t.Errorf("run %d: %s %s %+v", i, record.Outcome, record.Output, record.Error)
			}
		}
	}
}

// checkAttempts wants every attempt that failed to have done so for the engine's absence,
// and a program that was started once in each of those in which it was.
func (s *server) checkAttempts(record api.Record) {
	s.t.Helper()
	for _, attempt := range record.Attempts {
		got := []any{attempt.Outcome, attempt.Error.Category, attempt.Error.Kind}
		if diff := cmp.Diff([]any{api.SystemError, api.CategoryTransient, "unavailable"}, got); diff != "" {
			s.t.Errorf("run %s, attempt %d: %s", record.ID, attempt.Number, diff)
		}
	}
	if starts, err := s.startsOf(record.ID); err != nil || starts < 1 || starts > record.Retries+1 {
		s.t.Errorf("run %s: the program was started %d times in %d attempts: %v", record.ID, starts, record.Retries+1, err)
	}
	if starts, err := s.file(record, "starts"); err != nil || string(starts) != "x" {
		s.t.Errorf("run %s: its last attempt has %q: %v", record.ID, starts, err)
	}
}

// engineLine is a way to the engine that can be cut.
type engineLine struct {
	t       *testing.T
	network string // "unix" or "tcp"
	address string
	engine  string // its socket

	mu    sync.Mutex
	entry net.Listener // nil while it is cut
	conns map[net.Conn]bool
	work  sync.WaitGroup
}

func newEngineLine(t *testing.T, network string) *engineLine {
	t.Helper()
	engine := "/var/run/docker.sock"
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		at, err := url.Parse(host)
		if err != nil || at.Scheme != "unix" {
			t.Skipf("the engine is not at a socket of this machine")
		}
		engine = at.Path
	}
	dir, err := os.MkdirTemp("", "aod") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	l := &engineLine{t: t, network: network, address: filepath.Join(dir, "engine"), engine: engine, conns: map[net.Conn]bool{}}
	if network == "tcp" {
		l.address = programtest.FreeAddress(t)
	}
	t.Cleanup(func() {
		l.cut()
		l.work.Wait()
		_ = os.RemoveAll(dir)
	})
	l.join()
	return l
}

// host is what DOCKER_HOST says to go this way. By TCP the engine is taken for one that
// doesn't see our files.
func (l *engineLine) host() string { return l.network + "://" + l.address }

// join takes connections again.
func (l *engineLine) join() {
	l.t.Helper()
	entry, err := net.Listen(l.network, l.address)
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	l.entry = entry
	l.mu.Unlock()
	l.work.Go(func() {
		for {
			conn, err := entry.Accept()
			if err != nil {
				return // it is cut
			}
			l.work.Go(func() { l.carry(conn) })
		}
	})
}

// cut closes all connections and refuses new ones.
func (l *engineLine) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entry != nil {
		_ = l.entry.Close()
	}
	l.entry = nil
	for conn := range l.conns {
		_ = conn.Close()
	}
}

// carry passes bytes on in both directions until one of them ends.
func (l *engineLine) carry(client net.Conn) {
	engine, err := net.Dial("unix", l.engine)
	if err != nil {
		_ = client.Close()
		return
	}
	defer l.forget(client, engine)
	if !l.remember(client, engine) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pass(engine, client) })
	both.Go(func() { pass(client, engine) })
	both.Wait()
}

// pass copies until the end of one side's words, and tells the other side of it.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		err = errors.Join(err, half.CloseWrite())
	}
	if err != nil { // then nobody waits for an answer
		_ = to.Close()
		_ = from.Close()
	}
}

func (l *engineLine) remember(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = true
	}
	return l.entry != nil
}

func (l *engineLine) forget(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(l.conns, c)
	}
}
