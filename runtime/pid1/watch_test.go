//go:build linux

package pid1

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestAWatchedProgramIsToldOn(t *testing.T) {
	for _, c := range []struct {
		what, path      string
		writes, listens bool
	}{
		{"nothing", "/probe", false, false},
		{"write", "/etc/x", true, false}, // which is refused
		{"write", "/tmp/x", true, false},
		{"write", "x", true, false},
		{"write", "/dev/shm/x", true, false},
		{"write", "/dev/null", false, false},
		{"write", "/proc/self/comm", false, false},
		{"undo", "/tmp/x", true, false},
		{"mkdir", "/tmp/d", true, false},
		{"rename", "/tmp/x", true, false},
		{"many", "/tmp/nothing", true, false},
		{"listen", "127.0.0.1:0", false, true},
		{"bind", "127.0.0.1:0", false, true},
	} {
		t.Run(fmt.Sprintf("%s %s", c.what, c.path), func(t *testing.T) {
			r := inSandbox(t, "-watch", "calls", "--", "/probe", "attempt", c.what, c.path)
			report := r.report(t)
			if !report.Watched || report.WritesTried > 0 != c.writes || report.ListensTried > 0 != c.listens || r.code != 0 {
				t.Errorf("%+v %+v", report, r)
			}
			if many := c.what == "many"; many != (report.WritesTried == initreport.MaxTried) {
				t.Errorf("%d writes", report.WritesTried)
			}
		})
	}
}

func TestAProgramThatNobodyWatches(t *testing.T) {
	if report := inSandbox(t, "--", "/probe", "attempt", "write", "/etc/x").report(t); report.Watched || report.WritesTried != 0 {
		t.Errorf("%+v", report)
	}
}

func TestAWatchingInitStaysSmall(t *testing.T) {
	status := sandbox{program: []string{"-watch", "calls", "--", "/probe", "cat", "/proc/1/status"}}.run(t, nil).stdout
	wantAtMost(t, status, "VmHWM", 6<<10)
	wantAtMost(t, status, "Threads", 16) // what runtime.Spec adds for it to the limit of processes
}

func TestAWatchedForkBombEnds(t *testing.T) {
	r := sandbox{engine: roomy, program: []string{"-watch", "calls", "--", "/probe", "bomb-self"}}.run(t, signalTo(t, syscall.SIGTERM))
	if report := r.report(t); r.code != 143 || !report.Watched {
		t.Errorf("%+v %+v", report, r)
	}
}
