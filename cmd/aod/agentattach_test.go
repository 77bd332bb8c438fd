package main

import (
	"io"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestAConversationAtATerminal(t *testing.T) {
	s := newServer(t)
	s.addTalker("talker", askPeople+keptAlive)
	s.start()
	t.Setenv("AOD_SERVER", s.url())
	token := s.t.TempDir() + "/token"
	write(t, s.token, token)
	t.Setenv("AOD_TOKEN_FILE", token)

	code, stdout, stderr := command(t, t.Context(), "agent", "run", "talker", "--new-session", "-m", "one")
	if code != 0 || stdout != "heard 1, told 1: one\n" {
		t.Fatalf("%d %q %q", code, stdout, stderr)
	}
	_, id, _ := strings.Cut(stderr, "session ")
	id, _, _ = strings.Cut(id, "\n")
	code, stdout, stderr = command(t, t.Context(), "agent", "run", "talker", "--session", strings.TrimSpace(id), "-m", "two")
	if code != 0 || stdout != "heard 2, told 2: two\n" {
		t.Fatalf("%d %q %q", code, stdout, stderr)
	}

	in, typed := io.Pipe()
	out, shown := screen(false)
	quiet, _ := screen(false)
	a := newApp(in, out, quiet)
	go func() {
		_, _ = io.WriteString(typed, "three\nmay I\n")
		testkit.Eventually(t, "it asks", func() bool {
			for range s.client.Questions.List(t.Context(), "") {
				return true
			}
			return false
		})
		_, _ = io.WriteString(typed, "/answer deny\n")
		_ = typed.Close()
	}()
	if code := a.run(t.Context(), []string{"agent", "attach", strings.TrimSpace(id)}); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if want := "heard 3, told 3: three\nheard 4, told 4: may I deny\n"; shown.String() != want {
		t.Errorf("shown %q", shown.String())
	}

	code, stdout, _ = command(t, t.Context(), "agent", "sessions")
	if code != 0 || !strings.Contains(stdout, "talker  4 turns") {
		t.Errorf("%d %q", code, stdout)
	}
	if code, _, stderr := command(t, t.Context(), "agent", "sessions", "close", strings.TrimSpace(id)); code != 0 {
		t.Errorf("%d %q", code, stderr)
	}
	s.closed(strings.TrimSpace(id))
	for range s.client.Sessions.List(t.Context(), client.SessionFilter{Open: true}) {
		t.Error("a session is open")
	}
}
