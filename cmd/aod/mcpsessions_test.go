package main

import (
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// Sessions at once: of clients at stdio, and of clients of a server's API. Each ends for another reason.
const (
	stdioSessions = 1
	httpSessions  = 3
)

func TestEachSessionIsAContainerThatEndsWithIt(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--concurrency", "2")
	name := uniqueUnit()
	unit := addMCP(t, s.units, name, "")
	s.start()
	clients := make([]*mcpClient, stdioSessions)
	for i := range clients {
		clients[i] = startMCP(t, unit)
	}
	ids := s.sessions(name, httpSessions)
	left := stdioSessions + httpSessions
	if got := sessionContainers(t, s.engine, name); got != left {
		t.Fatalf("%d containers of %d sessions", got, left)
	}
	for _, end := range []struct {
		why  string
		many int
		do   func()
	}{
		{"clients were killed", stdioSessions, func() {
			for _, c := range clients {
				_ = c.process.Process.Kill()
			}
		}},
		{"clients left", 1, func() {
			for _, id := range ids[:1] {
				s.speaks("DELETE", name, id, "")
			}
		}},
		{"the program was killed", 1, func() {
			for _, id := range ids[1:2] {
				s.speaks("POST", name, id, toolCall(1, "killed", "{}"))
			}
		}},
		{"the server was killed", 1, s.kill},
	} {
		end.do()
		began := time.Now()
		left -= end.many
		testkit.Eventually(t, "containers are gone after "+end.why, func() bool { return sessionContainers(t, s.engine, name) == left })
		t.Logf("%s: %d containers were gone after %v", end.why, end.many, time.Since(began).Round(time.Millisecond))
	}
}

// sessions begins sessions at once.
func (s *server) sessions(unit string, n int) []string {
	s.t.Helper()
	ids := make([]string, n)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i] = s.session(unit) })
	}
	all.Wait()
	return ids
}
