package main

import (
	"context"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

func TestARunThatIsBeingStoppedWhenTheServerIsKilledEndsAsItWasToEnd(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		cancel  bool
		want    api.Outcome
	}{
		"because its time was up":  {timeout: 5 * time.Second, want: api.TimedOut}, // until the program listens to signals
		"because it was cancelled": {cancel: true, want: api.WasCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "--retry-delay", "10ms")
			s.addWorker("worker", "")
			s.start()
			var record api.Record
			testkit.Eventually(t, "the server is killed before the run is over, for which a busy machine may be late", func() bool {
				record = s.stopping(c.timeout, c.cancel)
				s.kill()
				var left []runtime.ContainerRef
				testkit.Eventually(t, "the container has ended", func() bool {
					left = s.containers()
					return len(left) == 0 || len(left) == 1 && left[0].State == "exited"
				})
				s.start()
				return len(left) == 1
			})
			if record = s.await(record.ID); record.Outcome != c.want || record.Retries != 0 {
				t.Errorf("the outcome is %s after %d retries: %+v", record.Outcome, record.Retries, record.Attempts)
			}
		})
	}
}

// stopping returns a run that is being stopped. On a busy machine a program may be killed
// before it has heard the signal: then it tries with another run.
func (s *server) stopping(timeout time.Duration, cancel bool) api.Record {
	s.t.Helper()
	for range 10 {
		record, err := s.submit(s.t.Context(), client.Submission{
			Unit: "worker", Input: work{Ticks: 600, Linger: 1}.input(), Timeout: timeout,
		})
		if err != nil {
			s.t.Fatal(err)
		}
		if cancel && s.writes(record.ID, "tick 1") {
			if _, err := s.client.Cancel(s.t.Context(), record.ID, ""); err != nil {
				s.t.Fatal(err)
			}
		}
		if s.writes(record.ID, "stopping") {
			return record
		}
	}
	s.t.Fatal("no program has heard that it is being stopped")
	return api.Record{}
}

// awaitLine returns when a run has written a line.
func (s *server) awaitLine(id, line string) {
	s.t.Helper()
	if !s.writes(id, line) {
		s.t.Fatalf("run %s never wrote %q", id, line)
	}
}

// writes waits until a run has written a line, and reports whether it did before its end.
func (s *server) writes(id, line string) bool {
	s.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), testkit.Patience)
	defer stop()
	for entry, err := range s.client.Log(ctx, id, true) {
		if err != nil {
			s.t.Fatal(err)
		}
		if entry.Text == line {
			return true
		}
	}
	return false
}
