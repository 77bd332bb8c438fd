package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

func TestARecordTellsThatItsLogIsNotWhole(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--concurrency", "1")
	s.addWorker("worker", "")
	s.start()
	hold := s.mustSubmit("worker", work{Mark: 1, Ticks: 600})
	s.awaitLine(hold, "tick 1")
	waits := s.mustSubmit("worker", work{Mark: 2})
	if err := os.MkdirAll(filepath.Join(s.home(), "runs", waits, "log.jsonl"), 0o700); err != nil { // where its log is to be
		t.Fatal(err)
	}
	if _, err := s.client.Cancel(t.Context(), hold, ""); err != nil {
		t.Fatal(err)
	}
	record := s.await(waits)
	told := slices.ContainsFunc(record.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "the run's log lacks lines") && strings.Contains(w, "is a directory")
	})
	if record.Outcome != api.Success || !told {
		t.Errorf("%s, %q", record.Outcome, record.Warnings)
	}
	if whole := s.await(hold); len(whole.Warnings) > 0 {
		t.Errorf("of a log that is whole: %q", whole.Warnings)
	}
}
