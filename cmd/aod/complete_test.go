package main

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator/history"
)

func TestWhatAServerHasIsCompleted(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	for _, c := range []struct{ line, want string }{
		{"run h", "hello"},
		{"units ", "hello other"},
		{"describe ", "hello other"},
		{"ps --unit o", "other"},
		{"logs ", "a-1\thello queued, a-2\tx"},
		{"cancel a-1", "a-1\thello queued"},
		{"logs a-1 ", ""},
	} {
		args := append([]string{"__complete", "--server", s.URL}, strings.Split(c.line, " ")...)
		code, stdout, stderr := command(t, t.Context(), args...)
		if code != 0 || strings.Contains(stderr, "aod:") {
			t.Errorf("%s: code %d, stderr %s", c.line, code, stderr)
		}
		words, _, _ := strings.Cut(stdout, ":")
		if c.want == "" && words != "" {
			t.Errorf("%s offers %q", c.line, words)
		}
		for want := range strings.FieldsFuncSeq(c.want, func(r rune) bool { return r == ' ' && !strings.Contains(c.want, "\t") }) {
			for part := range strings.SplitSeq(want, ", ") {
				if !strings.Contains(words, part) {
					t.Errorf("%s offers %q without %q", c.line, words, part)
				}
			}
		}
	}
}

func TestKeptRunsAreCompleted(t *testing.T) {
	_, data := alone(t)
	const id = "01999999-aaaa-7bbb-8ccc-dddddddddddd"
	keepRun(t, data, api.Record{ID: id, Unit: "hello", State: api.Failed})
	for _, name := range []string{"runs", "logs", "rerun"} {
		if _, stdout, _ := command(t, t.Context(), "__complete", name, "0199"); !strings.HasPrefix(stdout, id+"\thello failed") {
			t.Errorf("%s offers %q", name, stdout)
		}
	}
	if runs := history.New(data, 1).List(); len(runs) != 1 {
		t.Errorf("%+v", runs)
	}
}

// keepRun puts a run into the history of a data directory.
func keepRun(t *testing.T, data string, record api.Record) {
	t.Helper()
	document := history.Past{Record: record}
	write(t, ui.JSON(document), data, "history", record.ID, "past.json")
}
