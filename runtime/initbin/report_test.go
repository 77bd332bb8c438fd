package initbin

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

var good = initreport.Report{
	Version: 1, ExitCode: 143, Signal: 15, CPUSeconds: 0.1, PeakMemoryBytes: 1 << 30,
	OOMKills: 1, PIDsLimitHits: 2, MaxRSSBytes: 1 << 20, NetAttempts: 4, FilesLeft: 5, Source: initreport.Cgroup1,
}

func TestParseReportTakesWhatInitWrites(t *testing.T) {
	for name, change := range map[string]func(*initreport.Report){
		"an end by signal": func(*initreport.Report) {},
		"an exit":          func(r *initreport.Report) { r.ExitCode, r.Signal = 255, 0 },
		"a termination":    func(r *initreport.Report) { r.Terminated = true },
		"no start":         func(r *initreport.Report) { r.ExitCode, r.Signal, r.StartError = 127, 0, "x\n\"é\xff" },
		"a container that nobody claimed": func(r *initreport.Report) {
			r.ExitCode, r.Signal, r.Abandoned = 125, 0, true
		},
		"nothing to count": func(r *initreport.Report) {
			r.StdinTaken, r.NetAttempts, r.FilesLeft = -1, -1, -1
			r.MemoryBytes, r.DiskReadBytes, r.DiskWriteBytes = -1, -1, -1
		},
		"nothing counted": func(r *initreport.Report) { *r = initreport.Report{Version: 1, Source: initreport.Rusage} },
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			change(&r)
			got, err := ParseReport(r.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			r.StartError = strings.ToValidUTF8(r.StartError, "\uFFFD")
			if got != r {
				t.Errorf("got %+v, want %+v", got, r)
			}
		})
	}
}

func TestParseReportRefuses(t *testing.T) {
	raw := string(good.Append(nil))
	swap := func(old, new string) string { return strings.Replace(raw, old, new, 1) }
	for name, text := range map[string]string{
		"what isn't JSON":           "forged",
		"what isn't an object":      "[]",
		"an empty object":           "{}",
		"null":                      "null",
		"something behind it":       raw + raw,
		"a final newline":           raw + "\n",
		"a space":                   swap(":", ": "),
		"an unknown key":            swap("{", `{"x":1,`),
		"a repeated key":            swap("{", `{"version":1,`),
		"a missing key":             swap(`"version":1,`, ""),
		"another spelling":          swap("version", "Version"),
		"another version":           swap(`"version":1`, `"version":2`),
		"a negative number":         swap(`"oom_kills":1`, `"oom_kills":-1`),
		"a fraction":                swap(`"oom_kills":1`, `"oom_kills":1.0`),
		"an absurd number":          swap(`"pids_limit_hits":2`, `"pids_limit_hits":9223372036854775807`),
		"an absurd peak":            swap(`1073741824`, `4611686018427387904`),
		"an absurd size":            swap(`1048576`, `4611686018427387904`),
		"a number out of range":     swap(`"oom_kills":1`, `"oom_kills":1e99`),
		"stdin below none":          swap(`"stdin_taken":0`, `"stdin_taken":-2`),
		"processes below none":      swap(`"processes_left":0`, `"processes_left":-1`),
		"attempts below none":       swap(`"net_attempts":4`, `"net_attempts":-2`),
		"absurd attempts":           swap(`"net_attempts":4`, `"net_attempts":9223372036854775807`),
		"files below none":          swap(`"files_left":5`, `"files_left":-2`),
		"more files than it counts": swap(`"files_left":5`, `"files_left":1001`),
		"negative CPU time":         swap("0.100000", "-0.100000"),
		"minus nothing":             swap("0.100000", "-0.000000"),
		"absurd CPU time":           swap("0.100000", "1000000001.000000"),
		"a huge exponent":           swap("0.100000", "1e308"),
		"neither yes nor no":        swap(`"terminated":false`, `"terminated":0`),
		"not abandoned":             swap(`"terminated":false`, `"terminated":false,"abandoned":false`),
		"abandoned, but ended":      swap(`"terminated":false`, `"terminated":false,"abandoned":true`),
		"an unknown source":         swap("cgroup1", "cgroup3"),
		"a code over a byte":        swap(`"exit_code":143,"signal":15`, `"exit_code":256,"signal":0`),
		"a negative code":           swap(`"exit_code":143,"signal":15`, `"exit_code":-1,"signal":0`),
		"a negative signal":         swap(`"exit_code":143,"signal":15`, `"exit_code":127,"signal":-1`),
		"a signal without code":     swap(`"exit_code":143`, `"exit_code":0`),
		"an absurd signal":          swap(`"exit_code":143,"signal":15`, `"exit_code":228,"signal":100`),
		"an end without a start":    swap(`"start_error":""`, `"start_error":"x"`),
		"a long start error":        swap(`"start_error":""`, `"start_error":"`+strings.Repeat("x", 1000)+`"`),
		"bytes that aren't text":    swap(`"start_error":""`, "\"start_error\":\"\xff\""),
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := ParseReport([]byte(text)); !fault.Is(err, fault.Input) {
				t.Errorf("%s became %+v, %v", text, r, err)
			}
		})
	}
	t.Run("too much", func(t *testing.T) {
		if _, err := ParseReport(bytes.Repeat([]byte(" "), initreport.MaxBytes+1)); !fault.Is(err, fault.TooLarge) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nothing, by another kind", func(t *testing.T) {
		for _, raw := range []string{"", initreport.Begun} {
			if _, err := ParseReport([]byte(raw)); !fault.Is(err, fault.NotFound) {
				t.Errorf("%q: got %v", raw, err)
			}
		}
	})
}

func FuzzParseReport(f *testing.F) {
	f.Add(good.Append(nil))
	f.Add([]byte(`{"version":1,"exit_code":127,"signal":0,"start_error":"x: not found","terminated":false,"cpu_seconds":0.000000,` +
		`"peak_memory_bytes":0,"memory_bytes":0,"disk_read_bytes":-1,"disk_write_bytes":-1,"oom_kills":0,"pids_limit_hits":0,"max_rss_bytes":0,"stdin_taken":-1,"processes_left":0,"net_attempts":-1,"files_left":0,"source":"rusage"}`))
	f.Add([]byte(`{"cpu_seconds":1e308}`))
	f.Add(initreport.Report{Version: 1, ExitCode: 125, Abandoned: true, Source: initreport.Cgroup2}.Append(nil))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		r, err := ParseReport(raw)
		if err != nil {
			return
		}
		if !plausible(r) || len(r.StartError) > initreport.MaxStartError {
			t.Errorf("accepted %+v", r)
		}
		if again := r.Append(nil); !bytes.Equal(again, raw) {
			t.Errorf("%s was accepted, init writes %s", raw, again)
		}
	})
}

// A container is adopted with the init that an earlier version started it with: its report has this form.
func TestTheReportOfAnOlderInitIsRead(t *testing.T) {
	const counted = `"cpu_seconds":1.250000,"peak_memory_bytes":10,"memory_bytes":-1,"disk_read_bytes":-1,` +
		`"disk_write_bytes":9,"oom_kills":2,"pids_limit_hits":3,"max_rss_bytes":4,"stdin_taken":6,` +
		`"processes_left":7,"net_attempts":8,"files_left":5,"source":"cgroup2"`
	usage := initreport.Report{
		Version: 1, CPUSeconds: 1.25, PeakMemoryBytes: 10, MemoryBytes: -1, DiskReadBytes: -1, DiskWriteBytes: 9,
		OOMKills: 2, PIDsLimitHits: 3, MaxRSSBytes: 4, StdinTaken: 6, ProcessesLeft: 7, NetAttempts: 8, FilesLeft: 5,
		Source: initreport.Cgroup2,
	}
	killed, failed, watched, abandoned := usage, usage, usage, usage
	killed.ExitCode, killed.Signal, killed.Terminated = 143, 15, true
	failed.ExitCode, failed.StartError = 127, "no such file"
	watched.Watched, watched.WritesTried, watched.ListensTried, watched.LogEnd = true, 1, 2, strings.Repeat("0e", 16)
	abandoned.ExitCode, abandoned.Abandoned = 125, true
	for raw, want := range map[string]initreport.Report{
		`{"version":1,"exit_code":143,"signal":15,"start_error":"","terminated":true,` +
			counted + `}`: killed,
		`{"version":1,"exit_code":127,"signal":0,"start_error":"no such file","terminated":false,` +
			counted + `}`: failed,
		`{"version":1,"exit_code":125,"signal":0,"start_error":"","terminated":false,"abandoned":true,` +
			counted + `}`: abandoned,
		`{"version":1,"exit_code":0,"signal":0,"start_error":"","terminated":false,` + counted +
			`,"watched":true,"writes_tried":1,"listens_tried":2,"log_end":"0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e"}`: watched,
	} {
		got, err := ParseReport([]byte(raw))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", raw, err, diff)
		}
	}
}
