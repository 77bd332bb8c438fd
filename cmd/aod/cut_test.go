package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/programtest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestRunsOutliveTheEnginesAbsence(t *testing.T) {
	t.Parallel()
	cut := time.Duration(long(t, "AOD_CUT")) * time.Second
	line := newEngineLine(t, "unix") // which is needed until the server has ended
	s := newServer(t, "--concurrency", "4", "--retries", "0")
	s.env = []string{"DOCKER_HOST=" + line.host()}
	s.addWorker("worker", "")
	s.start()
	var ids []string
	for i := range 12 { // some are running, some are being started, some wait
		ids = append(ids, s.mustSubmit("worker", work{Mark: i, Ticks: []int{20, 1, 5}[i%3]}))
	}
	s.until(ids[0], "runs", running)

	line.cut()
	testkit.Eventually(t, "the server has noticed", func() bool { return s.status("/readyz") == http.StatusServiceUnavailable })
	for until := time.Now().Add(cut); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if alive, ready := s.status("/healthz"), s.status("/readyz"); alive != http.StatusOK || ready != http.StatusServiceUnavailable {
			t.Fatalf("without an engine, healthz says %d and readyz %d", alive, ready)
		}
	}
	ids = append(ids, s.mustSubmit("worker", work{Mark: 12})) // what is asked for meanwhile is done later
	line.join()
	testkit.Eventually(t, "the server is ready again", func() bool { return s.status("/readyz") == http.StatusOK })
	for i, id := range ids {
		s.judgeUndisturbed(id, work{Mark: i})
	}
}

func TestNoCutOfTheWayToTheEngineFailsOrRepeatsARun(t *testing.T) {
	t.Parallel()
	cuts, dice := long(t, "AOD_CUTS"), dice(t)
	line := newEngineLine(t, "unix") // which is needed until the server has ended
	c := &cutting{server: newServer(t, "--concurrency", "6", "--retries", "0", "--pool", "1")}
	c.env = []string{"DOCKER_HOST=" + line.host()}
	c.addWorker("worker", "")
	c.addWarmWorker("warmed", 1)
	c.addSizer()
	c.addCaller("link", strings.ReplaceAll(linkScript, "persist", "ask")) // which asks once
	c.addStamps()
	c.addTalker("talker", keptAlive)
	c.start()
	c.session = c.converse("talker")
	for i := range cuts {
		c.begin(i)
		time.Sleep(time.Duration(dice.IntN(1000)) * time.Millisecond)
		line.cut()
		time.Sleep(time.Duration(50+dice.IntN(450)) * time.Millisecond)
		line.join()
	}
	c.judge()
	t.Logf("%d cuts; %d workers, %d units, %d chains, %d flows, %d turns, %d entries anew",
		cuts, len(c.workers), c.sized, len(c.chains), len(c.flows), len(c.turns), strings.Count(c.log(), "engine away"))
}

// cutting is a server whose way to the engine is cut again and again while it has runs.
type cutting struct {
	*server
	session string

	workers, chains, flows, turns []string
	sized                         int
	sizing                        sync.WaitGroup
}

// begin has runs made of all kinds in turn.
func (c *cutting) begin(i int) {
	c.workers = append(c.workers, c.mustSubmit([]string{"worker", "warmed"}[i%2], work{Mark: i, Ticks: []int{2, 9, 0, 5}[i%4]}))
	switch i % 4 {
	case 1:
		c.sized++
		c.sizing.Go(func() { c.size(1 << 10) })
	case 3:
		c.chains = append(c.chains, c.call("link", fmt.Sprintf(`{"n":%d,"ticks":2}`, chainLinks)))
	default:
		c.turns = append(c.turns, c.say(c.session, fmt.Sprint("nap ", len(c.turns))))
	}
	if i%25 == 0 {
		c.flows = append(c.flows, c.call("stamps", `{}`))
	}
}

func (c *cutting) judge() {
	for i, id := range c.workers {
		c.judgeUndisturbed(id, work{Mark: i})
	}
	for i, id := range c.turns {
		c.replied(c.await(id), fmt.Sprintf("heard %d, told %d: nap %d", i+1, i+1, i))
	}
	for _, id := range c.chains {
		c.judgeChain(id)
	}
	for _, id := range c.flows {
		c.approve(c.question(id))
		c.judgeStamps(c.await(id))
	}
	c.sizing.Wait()
	c.endSession(c.session)
	for run, err := range c.client.Runs.List(context.Background(), api.Filter{}) {
		if err != nil || run.Outcome != api.Success {
			c.t.Errorf("run %s of %s is %s: %v", run.ID, run.Unit, run.Outcome, err)
		}
	}
}

// judgeUndisturbed wants a worker to have been started once, to have ended well in its first
// attempt, and all of its log to be there once.
func (s *server) judgeUndisturbed(id string, w work) {
	s.t.Helper()
	record := s.await(id)
	starts, err := s.startsOf(id)
	if record.Outcome != api.Success || record.Retries != 0 || string(record.Output) != string(work{Mark: w.Mark}.input()) {
		s.t.Errorf("run %d, %s: %s %s after %d retries: %+v", w.Mark, id, record.Outcome, record.Output, record.Retries, record.Error)
	}
	if file, unread := s.file(record, "starts"); starts != 1 || err != nil || string(file) != "x" {
		s.t.Errorf("run %d, %s: the program was started %d times, and wrote %q: %v", w.Mark, id, starts, file, errors.Join(err, unread))
	}
	var asked work
	if err := json.Unmarshal(record.Input, &asked); err != nil {
		s.t.Error(err)
	}
	lines := 0
	for range s.client.Runs.Log(context.Background(), id, api.LogFilter{}) {
		lines++
	}
	if lines != 1+asked.Ticks {
		s.t.Errorf("run %d, %s: the log has %d lines of %d", w.Mark, id, lines, 1+asked.Ticks)
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
