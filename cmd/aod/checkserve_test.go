package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckAgentOfOurOwnServer holds real runs against the agent HTTP contract.
func TestCheckAgentOfOurOwnServer(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"worker", "csv-report", "third"} {
		s.addWorker(name, "")
	}
	s.start()
	slow := filepath.Join(t.TempDir(), "inputs.json")
	write(t, `{"ticks":8,"mark":1}`, slow) // so that it can be seen whether events come as they happen
	token := filepath.Join(s.home(), "token")
	code, stdout, stderr := command(t, t.Context(), "check-agent", "--token-file", token, s.url()+"=WORKER", s.url()+"=CSV_REPORT")
	if code != 0 || strings.Contains(stdout, "FAIL") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	for range 5 { // on a busy machine events may be read together that came one by one
		code, stdout, stderr = command(t, t.Context(), "check-agent", "--token-file", token, "--inputs", slow, s.url()+"=third")
		if !strings.Contains(stdout, "came together") {
			break
		}
	}
	if code != 0 || strings.Contains(stdout, "FAIL") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
}
