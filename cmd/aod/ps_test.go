package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

func TestPs(t *testing.T) {
	alone(t)
	for _, c := range []struct{ args, query string }{
		{"ps", "active=true&limit=51"},
		{"ps -a -n 5", "limit=6"},
		{"ps --state queued,failed --unit hello", "limit=51&state=idle%2Cfailed&unit=hello"},
		{"runs", "limit=51"},
	} {
		s := newFakeServer(t)
		code, stdout, stderr := command(t, t.Context(), append(strings.Fields(c.args), "--server", s.URL)...)
		if code != 0 || stderr != "" {
			t.Fatalf("%s: code %d, stderr %s", c.args, code, stderr)
		}
		if requests, _ := s.seen(); requests[0] != "GET /v1/runs?"+c.query {
			t.Errorf("%s asked for %s", c.args, requests[0])
		}
		var got [][]string
		for line := range strings.Lines(stdout) {
			got = append(got, strings.Fields(line))
		}
		age := ui.Age(time.Since(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)))
		want := [][]string{
			{"ID", "UNIT", "STATE", "RETRIES", "AGE", "DURATION", "ERROR"},
			{"a-1", "hello", "queued", "0", age, "-", "-"},
			{"a-2", "x\uFFFD[2J", "failed", "2", age, "1.5s", "memory_limit,", "X:", "killed\uFFFD[2J"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.args, diff)
		}
	}
}

func TestPsSaysWhenThereIsMore(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	_, stdout, stderr := command(t, t.Context(), "ps", "-n", "1", "--json", "--server", s.URL)
	if strings.Count(stdout, "\n") != 1 || !json.Valid([]byte(stdout)) {
		t.Errorf("stdout %q", stdout)
	}
	contains(t, stderr, "more than these 1")
	for _, args := range [][]string{{"--state", "asleep"}, {"--limit", "0"}} {
		if code, _, _ := command(t, t.Context(), append([]string{"ps", "--server", s.URL}, args...)...); code != 2 {
			t.Errorf("%v: code %d", args, code)
		}
	}
}

func TestRunsShowsARunToAPerson(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	at := time.Now().Add(-time.Hour)
	s.addFile("copy\x1b.txt", "x")
	r := &s.record
	code := 137
	r.State, r.Outcome, r.ExitCode, r.CreatedAt, r.StartedAt = api.Failed, api.OutOfMemory, &code, at, &at
	r.Version, r.RerunOf, r.Retries, r.Warnings = "0123456789abcdef0", "earlier", 1, []string{"mind\nthe gap"}
	r.Container = &api.Container{ID: "fedcba98765432100", WaitedMS: 65432}
	r.Timings = api.Timings{Queue: 3, Run: 1234.5, Total: 61000}
	r.Usage = &api.Usage{CPUSeconds: 0.25, PeakMemoryBytes: 64 << 20}
	r.Log = api.LogStats{Bytes: 1024, Truncated: true}
	r.Error = &api.RunError{Kind: "memory_limit", Type: "X", Message: "killed\x1b[2J\nreally", Hint: "more memory", Findings: []fault.Finding{{Pointer: "/x", Message: "wrong"}}}
	r.Attempts = []api.Attempt{{Number: 1, Outcome: api.SystemError, FinishedAt: at, Error: &api.RunError{Kind: "unavailable", Message: "engine away"}}}
	r.Transitions = []api.Transition{{State: api.Starting, At: at, Attempt: 2, Reason: "again"}, {State: api.Idle, At: at}, {State: api.Cleanup, At: at}, {State: api.Idle, At: at}}
	exit, stdout, _ := command(t, t.Context(), "runs", fakeID, "--server", s.URL)
	if exit != 0 {
		t.Errorf("code %d", exit)
	}
	contains(t, stdout, "run       "+fakeID, "unit      hello (capsule, 0123456789abcdef)", "outcome   failed (out_of_memory), exit code 137",
		"rerun of  earlier", "container fedcba9876543210 (had waited for 1m5s)", "1h ago", "times     queue 3ms, run 1.2s, total 1m1s", "usage     0.25s of CPU, 64.0 MiB of memory at most",
		"log       1.0 KiB, cut at the limit", "error     memory_limit, X: killed", "          really\n", "hint: more memory", "✗ /x: wrong",
		"warning   mind the gap", "attempt   1, system_error, ", "unavailable: engine away", "starting (attempt 2): again", "  queued\n", "  cleanup\n", "  idle\n", "copy\uFFFD.txt  1 B  sha256:")
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("a control character came through: %q", stdout)
	}
	_, stdout, _ = command(t, t.Context(), "runs", fakeID, "--json", "--server", s.URL)
	contains(t, stdout, `"retries":1`)
}

func TestLogsCancelRerunUnitsPrune(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	s.log = []string{"one", "5%\rtwo\x1b[2J"}
	cases := []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"logs " + fakeID, 0, "one\ntwo\uFFFD[2J\n", ""},
		{"logs -f " + fakeID, 0, "one\ntwo\uFFFD[2J\n", ""},
		{"logs --tail 1 " + fakeID, 0, "two\uFFFD[2J\n", ""},
		{"logs --tail -1 " + fakeID, 2, "", "--tail must not be below zero"},
		{"logs ../x", 2, "", "not the id of a run"},
		{"cancel", 2, "", "the ids of one run or more"},
		{"cancel ../x " + fakeID, 2, "", "the run has ended"},
		{"rerun " + fakeID + " --detach", 0, fakeID + "\n", ""},
		{"-q rerun " + fakeID, 0, `{"n":3}` + "\n", ""},
		{"units", 0, "NAME   KIND     VERSION           SOURCE  TIMEOUT  MEMORY  NETWORK  PROBLEM  DESCRIPTION\n" +
			"hello  capsule  0123456789abcdef  upload  1m       64MiB   bridge   broken   says \uFFFD[2Jhello\nother  capsule  -                 -       -        -       -        -        -\n", ""},
		{"units hello", 0, "unit      hello (capsule)\naccess    read-only\nat once   2 runs\n" +
			"timeout   1m, at most 1h\nlimits    memory 64MiB, cpus 0.5, pids 9, output 1MiB\nsandbox   network bridge (root writable, runsc)\nreuse     4 runs a container\nwarm      2 containers\nretries   1\n" +
			"may call  a, b\nenv       E\nlowered   retries: 5 asked for, 1 by policy.retries\nrefused   may not\n          ask\ninput     {\"type\":\"object\"}\n", ""},
		{"prune", 2, "", "say which runs to remove"},
		{"prune --max-size 1x", 2, "", "write a size, such as 512MiB"},
		{"prune --older-than 24h --max-size 1.5GiB --dry-run", 0, "would remove 2 runs, 2.0 KiB\n", ""},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := command(t, t.Context(), append(strings.Fields(c.args), "--server", s.URL)...)
			if code != c.code || !strings.Contains(stderr, c.stderr) {
				t.Errorf("code %d, stderr %s", code, stderr)
			}
			if diff := cmp.Diff(c.stdout, stdout); diff != "" {
				t.Error(diff)
			}
		})
	}
	_, bodies := s.seen()
	if got, want := bodies[len(bodies)-1], `{"older_than":"24h0m0s","max_bytes":1610612736,"dry_run":true}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func TestCancelOnAServer(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	s.hold = make(chan struct{})
	code, stdout, stderr := command(t, t.Context(), "cancel", fakeID, "--reason", "wrong one", "--server", s.URL)
	if code != 0 || stdout != "" {
		t.Errorf("code %d, stdout %q", code, stdout)
	}
	contains(t, stderr, "cancelling "+fakeID)
	if _, bodies := s.seen(); bodies[0] != `{"reason":"wrong one"}` {
		t.Errorf("sent %s", bodies[0])
	}
}

func TestAnEmptyListSaysWhatElseThereIs(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	s.idle = true
	_, stdout, stderr := command(t, t.Context(), "ps", "--server", s.URL)
	contains(t, stdout, "ID  UNIT  STATE")
	contains(t, stderr, "`aod ps -a` also shows the runs that have ended")
	if _, _, stderr := command(t, t.Context(), "ps", "-a", "--server", s.URL); stderr != "" {
		t.Errorf("with -a: %s", stderr)
	}
}
