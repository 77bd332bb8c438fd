package initreport

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestAppendWritesTheWholeReport(t *testing.T) {
	r := Report{
		Version: 1, ExitCode: 137, Signal: 9, StartError: "a\"b\\c\n\x01é", Terminated: true, CPUSeconds: 1.25,
		PeakMemoryBytes: 1 << 40, MemoryBytes: 8, DiskReadBytes: NotCounted, DiskWriteBytes: 9, OOMKills: 2, PIDsLimitHits: 3, MaxRSSBytes: 4096, StdinTaken: 6, ProcessesLeft: 7, NetAttempts: NotCounted, FilesLeft: 5, Source: Cgroup2,
	}
	const want = `{"version":1,"exit_code":137,"signal":9,"start_error":"a\"b\\c\u000a\u0001é","terminated":true,` +
		`"cpu_seconds":1.250000,"peak_memory_bytes":1099511627776,"memory_bytes":8,"disk_read_bytes":-1,"disk_write_bytes":9,"oom_kills":2,"pids_limit_hits":3,` +
		`"max_rss_bytes":4096,"stdin_taken":6,"processes_left":7,"net_attempts":-1,"files_left":5,"source":"cgroup2"}`
	got := string(r.Append(nil))
	if got != want {
		t.Errorf("Append wrote\n%s\nwant\n%s", got, want)
	}
	var back Report
	if err := json.Unmarshal([]byte(got), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Errorf("the report changed on its way (-want +got):\n%s", diff)
	}
}

func TestAppendTellsOfAnAbandonedContainerOnly(t *testing.T) {
	abandoned := Report{Version: Version, ExitCode: 125, Abandoned: true, Source: Rusage}
	var back Report
	if err := json.Unmarshal(abandoned.Append(nil), &back); err != nil || back != abandoned {
		t.Errorf("it came back as %+v, %v", back, err)
	}
	if raw := string(Report{}.Append(nil)); strings.Contains(raw, "abandoned") {
		t.Errorf("another has it as well: %s", raw)
	}
}

func TestAppendCutsTheStartError(t *testing.T) {
	for name, text := range map[string]string{
		"a long text":                        strings.Repeat("x", 10_000),
		"a rune across the limit":            strings.Repeat("x", MaxStartError-1) + "é",
		"bytes that aren't UTF-8":            strings.Repeat("\xff", 1000),
		"control characters, six bytes each": strings.Repeat("\x00", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			raw := Report{StartError: text}.Append(nil)
			var back Report
			if err := json.Unmarshal(raw, &back); err != nil {
				t.Fatal(err)
			}
			if len(back.StartError) > MaxStartError || !utf8.ValidString(back.StartError) {
				t.Errorf("%d bytes of start error came back", len(back.StartError))
			}
			if len(raw) > MaxBytes {
				t.Errorf("the report takes %d bytes", len(raw))
			}
		})
	}
}
