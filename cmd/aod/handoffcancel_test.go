package main

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// branchScript calls itself so often at once as it is told, and then sleeps until SIGTERM.
const branchScript = `trap 'exit 143' TERM
for ((i = 1; i <= $(number first); i++)); do
	persist POST /handoff "call-$i" "{\"target\":\"branch\",\"args\":{\"first\":$(number then)}}" &
done
echo started
sleep 600 &
wait $!
`

const (
	treeInput = `{"first":2,"then":3}`
	treeRuns  = 1 + 2 + 2*3
	// soonTime is generous: what is measured is told. What a busy engine takes is measured as well.
	soonTime = 15 * time.Second
)

func TestCancellingATreeEndsEveryContainerSoon(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--concurrency", "20", "--starts", "2", "--pool", "0") // what waits for others isn't the tree's
	s.addCaller("branch", branchScript)
	s.start()
	root := s.growTree()
	began := time.Now()
	if _, err := s.client.Runs.Cancel(t.Context(), root, "enough"); err != nil {
		t.Fatal(err)
	}
	s.awaitNoneRuns()
	cancelled := time.Since(began)
	s.judgeCancelled(root)
	told := time.Since(began)

	root = s.growTree()
	s.kill() // so that nobody else works while the engine kills
	began = time.Now()
	s.killContainers()
	s.awaitNoneRuns()
	killed := time.Since(began)
	s.start()
	if _, err := s.client.Runs.Cancel(t.Context(), root, "it would be tried again"); err != nil {
		t.Fatal(err)
	}
	t.Logf("of %d containers none runs %v after the cancellation, all is recorded after %v; killing as many at once takes %v",
		treeRuns, cancelled.Round(time.Millisecond), told.Round(time.Millisecond), killed.Round(time.Millisecond))
	if cancelled > soonTime+3*killed {
		t.Errorf("the tree's containers ran on for %v", cancelled)
	}
}

// growTree returns when every program of a tree of calls has begun.
func (s *server) growTree() (root string) {
	s.t.Helper()
	root = s.call("branch", treeInput)
	var runs []string
	testkit.Eventually(s.t, "the tree is whole", func() bool { runs = s.links(root); return len(runs) == treeRuns })
	for _, id := range runs {
		s.awaitLine(id, "started")
	}
	testkit.Eventually(s.t, "the engine knows that all run", func() bool { return len(s.runningContainers()) == treeRuns })
	return root
}

func (s *server) runningContainers() (ids []string) {
	for _, ref := range s.containers() {
		if ref.State == runtime.StatusRunning {
			ids = append(ids, ref.ID)
		}
	}
	return ids
}

func (s *server) awaitNoneRuns() {
	s.t.Helper()
	testkit.Eventually(s.t, "no container runs", func() bool { return len(s.runningContainers()) == 0 })
}

// judgeCancelled wants each run of the tree to end as cancelled, and soon.
func (s *server) judgeCancelled(root string) {
	s.t.Helper()
	for _, id := range s.links(root) {
		if record := s.await(id); record.Outcome != api.WasCancelled {
			s.t.Errorf("run %s is %s: %+v", id, record.Outcome, record.Error)
		}
	}
	if runs := s.links(root); len(runs) != treeRuns {
		s.t.Errorf("the tree has %d runs", len(runs))
	}
}

// killContainers does as `docker kill` with the ids of all.
func (s *server) killContainers() {
	var all sync.WaitGroup
	for _, id := range s.runningContainers() {
		all.Go(func() {
			if err := s.engine.Kill(context.Background(), id); err != nil {
				s.t.Errorf("kill: %v", err)
			}
		})
	}
	all.Wait()
}
