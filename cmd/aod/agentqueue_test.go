package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// addWriter adds an agent of which one run goes on at a time, until the test lets it end.
func (s *server) addWriter() {
	s.t.Helper()
	write(s.t, "FROM "+dockertest.Image+"\n", s.units, "writer", "Dockerfile")
	write(s.t, "name: writer\nkind: agent\naccess: read-write\nlimits: {timeout: 10m}\n"+
		"agent: {command: [bash, -c, 'until [ -e /workspace/go ]; do sleep 0.02; done']}\n", s.units, "writer", "agent.yaml")
}

// letEnd lets a run of the writer end that goes on.
func (s *server) letEnd(id string) {
	s.t.Helper()
	write(s.t, "", s.home(), "runs", id, "1", "workspace", "go")
}

const writerRun = `{"unit":"writer","input":{"message":"x"}}`

// Of twelve runs at once of an agent that writes, eleven follow one another, and one is refused.
func TestRunsOfAnAgentThatWritesFollowOneAnother(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--concurrency", "8")
	s.addWriter()
	s.start()
	var mu sync.Mutex
	statuses, waiting := map[int]int{}, map[string]bool{}
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			status, answer := s.post("/v1/runs", writerRun)
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
			var record api.Record
			if json.Unmarshal([]byte(answer), &record) == nil && status == http.StatusAccepted {
				waiting[record.ID] = true
			}
		})
	}
	all.Wait()
	if statuses[http.StatusAccepted] != 11 || statuses[http.StatusTooManyRequests] != 1 {
		t.Errorf("answered %v", statuses)
	}
	var end time.Time
	for len(waiting) > 0 {
		var goesOn []string
		testkit.Eventually(t, "the next one runs", func() bool {
			goesOn = nil
			for id := range waiting {
				if record, err := s.client.Run(t.Context(), id); err == nil && running(record) {
					goesOn = append(goesOn, id)
				}
			}
			return len(goesOn) > 0
		})
		if len(goesOn) > 1 {
			t.Fatalf("%d run at once", len(goesOn))
		}
		delete(waiting, goesOn[0])
		s.letEnd(goesOn[0])
		record := s.await(goesOn[0])
		if record.Outcome != api.Success || record.StartedAt.Before(end) {
			t.Errorf("%s: %s, began at %v, and the one before it ended at %v", record.ID, record.Outcome, record.StartedAt, end)
		}
		end = record.StartedAt.Add(time.Duration(record.Timings.Run) * time.Millisecond)
	}
}

// Who waits for longer than the operator has it is told so, and its run never begins.
func TestARunOfAnAgentThatWaitedTooLongIsUnavailable(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.addWriter()
	write(t, "unit:\n  writer: {queue_wait: 200ms}\n", s.data, "aod.yaml")
	s.flags = append(s.flags, "--config", filepath.Join(s.data, "aod.yaml"))
	s.start()
	var first api.Record
	testkit.Eventually(t, "one runs, which a busy server may have wait too long though nobody is before it", func() bool {
		_, answer := s.post("/v1/runs", writerRun)
		if err := json.Unmarshal([]byte(answer), &first); err != nil {
			t.Fatal(err)
		}
		first = s.until(first.ID, "runs or is over", func(r api.Record) bool { return running(r) || over(r) })
		if over(first) && (first.Error == nil || first.Error.Kind != api.KindQueueTimeout) {
			t.Fatalf("%s %+v", first.Outcome, first.Error)
		}
		return running(first)
	})
	status, answer := s.post("/v1/runs?wait=30s", writerRun)
	var problem struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal([]byte(answer), &problem); status != http.StatusServiceUnavailable || err != nil || problem.Code != "unavailable" {
		t.Errorf("%d %s", status, answer)
	}
	s.letEnd(first.ID)
	if record := s.await(first.ID); record.Outcome != api.Success {
		t.Errorf("%s %+v", record.Outcome, record.Error)
	}
}
