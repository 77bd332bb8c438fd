package main

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestAnInterruptCancelsTheRunAndWaitsForItsEnd(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	s.hold, s.held = make(chan struct{}), interrupt
	s.events = []string{`state {"state":"running"}`}
	s.log = []string{"the last line"}
	code, stdout, stderr := command(t, ctx, "run", "hello", "--server", s.URL)
	if code != 130 || stdout != "" {
		t.Errorf("code %d, stdout %q, stderr %s", code, stdout, stderr)
	}
	requests, bodies := s.seen()
	if diff := cmp.Diff([]string{"POST /v1/runs", "POST /v1/runs/" + fakeID + "/cancel"}, requests); diff != "" {
		t.Fatal(diff)
	}
	if bodies[1] != `{"reason":"interrupted"}` {
		t.Errorf("sent %s", bodies[1])
	}
}

func TestAnInterruptDuringTheSubmissionLeavesNoRunBehind(t *testing.T) {
	alone(t)
	testkit.Eventually(t, "the answer comes before the interrupted command gives up", func() bool {
		s := newFakeServer(t)
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		began := time.Now()
		s.hold, s.asked = make(chan struct{}), interrupt
		code, _, stderr := command(t, ctx, "run", "hello", "--server", s.URL)
		requests, _ := s.seen()
		if len(requests) == 1 && time.Since(began) >= cli.SubmitGrace {
			return false // a busy machine has taken all the time that there is for the answer
		}
		if code != 130 {
			t.Errorf("code %d, stderr %s", code, stderr)
		}
		if diff := cmp.Diff([]string{"POST /v1/runs", "POST /v1/runs/" + fakeID + "/cancel"}, requests); diff != "" {
			t.Error(diff)
		}
		return true
	})
}

func TestAnInterruptOfARunOnAServerThatIsAway(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	s.hold = make(chan struct{})
	s.held = func() {
		s.Listener.Close()
		interrupt()
	}
	s.Config.SetKeepAlivesEnabled(false)
	code, _, stderr := command(t, ctx, "--data", t.TempDir(), "-q", "run", "hello", "--server", s.URL)
	if code != 130 {
		t.Errorf("code %d", code)
	}
	contains(t, stderr, "it may go on: aod cancel "+fakeID)
}
