package runlog

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api"
)

func TestTheLastWordsOfARun(t *testing.T) {
	dir := t.TempDir()
	exit := 3
	failed := api.Record{ID: "r", Outcome: api.CapsuleError, ExitCode: &exit, Retries: 1}
	if got := LastWords(dir, failed); got != "" {
		t.Errorf("there is no log: %q", got)
	}
	log := New(dir)
	say := func(attempt int, stream, text string) {
		log.Add(api.LogEntry{Attempt: attempt, Stream: stream, Text: text})
	}
	say(1, "stderr", "of an earlier attempt")
	say(2, "stdout", "of the other stream")
	say(2, "stderr", "first")
	say(2, "stderr", "second")
	if got := LastWords(dir, failed); got != "first\nsecond" {
		t.Errorf("%q", got)
	}
	for range 3 * wordsIn / 1000 { // more than is looked at
		say(2, "stdout", strings.Repeat("o", 1000))
	}
	if got := LastWords(dir, failed); got != "" {
		t.Errorf("%q", got)
	}
	for range 100 {
		say(2, "stderr", strings.Repeat("x", 99))
	}
	got := LastWords(dir, failed)
	if len(got) > maxWords || len(got) < maxWords-100 || strings.Trim(got, "x\n") != "" || len(got)%100 != 99 {
		t.Errorf("%d bytes, not whole lines: %q", len(got), got)
	}
	say(2, "stderr", strings.Repeat("é", maxWords))
	if got := LastWords(dir, failed); len(got) > maxWords || len(got) < maxWords-1 || !utf8.ValidString(got) {
		t.Errorf("%d bytes", len(got))
	}
	log.Close()
	for _, record := range []api.Record{{ID: "r", Outcome: api.Success, ExitCode: &exit}, {ID: "r", Outcome: api.RemoteError}} {
		if got := LastWords(dir, record); got != "" {
			t.Errorf("%s: %q", record.Outcome, got)
		}
	}
	if err := os.WriteFile(pathIn(dir), []byte("{\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := LastWords(dir, failed); got != "" {
		t.Errorf("of a broken log: %q", got)
	}
}
