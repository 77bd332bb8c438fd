//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestAConversationAtATerminal(t *testing.T) {
	t.Parallel()
	s, session, _ := newChatty(t)
	defer s.endSession(session)
	p := sitDown(t, s.addressed("chat", session)...)
	p.stays()
	p.sees("\r\n> ")
	p.types("work\r")
	p.sees(" … 214 lines")
	p.sees("worked\r\n")
	p.types("hello\r")
	p.sees("heard hello\r\n")
	p.types("\x1b[A\x7f\r") // the line before, without its end
	p.sees("heard hell\r\n")
	p.types("wait\r")
	testkit.Eventually(t, "it waits", func() bool { return s.timesTold(session) == 4 })
	p.types("\x03")
	p.sees("the run was cancelled: interrupted\r\n")
	p.types("/retr\x7f\x7f\x7f\x7fcost\r")
	p.sees("all of it, 4 turns: ")
	p.types("\x03")
	p.sees("Ctrl-C once more")
	p.types("\x04")
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d: %q", code, p.all())
	}
	if !p.lines() || !p.shows() || strings.Count(p.all(), "worked\r\n") != 1 {
		t.Errorf("lines %v, shown %v, seen %q", p.lines(), p.shows(), p.all())
	}
}
