//go:build linux

package main

import (
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// A disk that fails for a moment, whatever is being written to which file, costs no run that was
// accepted, makes no result wrong, and is never the unit's fault.
func TestAnErrorOfTheDiskIsNobodysFault(t *testing.T) {
	t.Parallel()
	moments, dice := long(t, "AOD_ERRORS"), dice(t)
	s := newServer(t, "--concurrency", "3", "--retries", "1", "--retry-delay", "100ms")
	s.bad = &badDisk{t: t, below: s.home()}
	s.addWorker("worker", "")
	s.start()
	s.await(s.mustSubmit("worker", work{})) // its image is built
	told, count := map[string]api.Record{}, map[string]int{}
	for range moments {
		for id, record := range s.failOnce(dice, count) {
			told[id] = record
		}
	}
	t.Logf("the disk failed: %v", count)
	if count["errors"] == 0 {
		t.Error("it never failed")
	}
	s.kill()
	s.bad = nil
	s.flags = append(s.flags, "--pool", "0")
	s.start()
	testkit.Eventually(t, "what waited for runs is gone", func() bool { return len(s.containers()) == 0 })
	for id, was := range told {
		if now := s.await(id); now.Outcome != was.Outcome || string(now.Output) != string(was.Output) {
			t.Errorf("run %s was told to be %s %s, and is %s %s", id, was.Outcome, was.Output, now.Outcome, now.Output)
		}
	}
}

// failOnce has runs accepted while the disk fails, and returns what is told of their ends.
func (s *server) failOnce(dice *rand.Rand, count map[string]int) map[string]api.Record {
	s.t.Helper()
	doc := filepath.Join(s.t.TempDir(), "doc")
	content := strings.Repeat("one line of many\n", 100)
	write(s.t, content, doc)
	late := dice.IntN(3) > 0
	if !late {
		s.bad.next(dice.IntN(30), 1+dice.IntN(2)) // amid requests
	}
	marks := map[string]int{}
	for mark := range 3 {
		record, err := s.client.Runs.Submit(s.t.Context(), client.Submission{
			Unit: "worker", Input: work{Mark: mark, Ticks: dice.IntN(3)}.input(), Files: []client.InputFile{{Field: "doc", Path: doc}},
		})
		if err != nil {
			count["refused"]++
			continue
		}
		marks[record.ID] = mark
	}
	if late {
		s.bad.next(dice.IntN(60), 1+dice.IntN(3)) // amid runs
	}
	ended := map[string]api.Record{}
	for id, mark := range marks {
		record := s.await(id)
		s.judgeFull(record, mark, content)
		count[string(record.Outcome)]++
		ended[id] = record
	}
	failed := s.bad.rest()
	s.t.Logf("failed: %v", failed)
	count["errors"] += len(failed)
	testkit.Eventually(s.t, "the server is ready again", func() bool { return s.status("/readyz") == http.StatusOK })
	return ended
}
