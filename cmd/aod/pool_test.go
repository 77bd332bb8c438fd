package main

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// full returns when so many sandboxes wait.
func (s *server) full(n int) {
	s.t.Helper()
	testkit.Eventually(s.t, fmt.Sprintf("%d sandboxes wait", n), func() bool {
		stats, err := s.client.Pool(context.Background())
		return err == nil && stats.Waiting >= n
	})
}

// submitUntilLoaded returns when the pool has learnt that the unit's program asks.
func (s *server) submitUntilLoaded(name string) {
	s.t.Helper()
	testkit.Eventually(s.t, "programs are loaded ahead", func() bool {
		_, found := s.wantNobody(s.submitSpy(name, freshWord(), 0))
		return found.Ahead
	})
}

// freshWord is a word that was never used before.
func freshWord() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }

func TestAClaimNeverSeesAnotherRunsBytes(t *testing.T) {
	t.Parallel()
	const pool = 2
	s := newServer(t, "--concurrency", "4", "--pool", strconv.Itoa(pool))
	s.addPythonSpy("spy", pool)
	s.start()
	waited, ahead := 0, 0
	seen := map[string]bool{}
	look := func(id string) {
		record, found := s.wantNobody(id)
		if seen[record.Container.ID] {
			t.Errorf("run %s has a container that another one had", id)
		}
		seen[record.Container.ID] = true
		if record.Container.WaitedMS > 0 {
			waited++
		}
		if found.Ahead {
			ahead++
		}
	}
	look(s.submitSpy("spy", "first", 0))
	s.submitUntilLoaded("spy")
	for i := range 3 {
		s.full(1)
		look(s.submitSpy("spy", fmt.Sprint("after-", i), 0))
	}
	s.full(2)
	var together []string
	for i := range 2 {
		together = append(together, s.submitSpy("spy", fmt.Sprint("beside-", i), 1200))
	}
	for _, id := range together {
		s.awaitLine(id, "listening")
	}
	a, b := s.until(together[0], "runs", anything), s.until(together[1], "runs", anything)
	if !running(a) || !running(b) {
		t.Error("the two don't run at the same time")
	}
	s.letGo(together...)
	for _, id := range together {
		look(id)
	}
	if waited == 0 || ahead == 0 {
		t.Errorf("%d of %d runs got a sandbox that waited, %d one with its program loaded", waited, len(seen), ahead)
	}
	t.Logf("%d of %d runs got a sandbox that waited, %d one with its program loaded", waited, len(seen), ahead)
}

func anything(api.Record) bool { return true }
