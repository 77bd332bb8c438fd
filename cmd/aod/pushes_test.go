package main

import (
	"strings"
	"testing"
)

func TestARunsPageTellsOfItsPushes(t *testing.T) {
	s := newFakeServer(t)
	code, stdout, stderr := command(t, t.Context(), "runs", fakeID, "--server", s.URL)
	if code != 0 {
		t.Fatalf("%d %s", code, stderr)
	}
	contains(t, stdout, "p1  5 delivered, 2 to come", "p2  0 delivered, given up 2026-01-02", "unanswered, 7 lost")
	if strings.Contains(stdout, "hook.example") {
		t.Errorf("it shows an address:\n%s", stdout)
	}
}
