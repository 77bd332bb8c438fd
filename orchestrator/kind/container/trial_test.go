package container

import (
	"testing"

	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestAPeakOfFilesIsNoMemoryOfTheProgram(t *testing.T) {
	for _, c := range []struct {
		name   string
		report initreport.Report
		want   int64
	}{
		{"below the limit", initreport.Report{PeakMemoryBytes: 90, MaxRSSBytes: 50}, 90},
		{"at the limit, and nothing was killed", initreport.Report{PeakMemoryBytes: 100, MaxRSSBytes: 50}, 50},
		{"at the limit, and something was killed", initreport.Report{PeakMemoryBytes: 100, MaxRSSBytes: 50, OOMKills: 1}, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := peakMemory(c.report, 100); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestWhatNobodyCountedProvesNothing(t *testing.T) {
	run := observedRun(runtime.End{Reported: true, Report: initreport.Report{NetAttempts: initreport.NotCounted, FilesLeft: 3}}, runtime.Limits{})
	if run.NetworkAttempts != nil || run.FilesWritten == nil || *run.FilesWritten != 3 {
		t.Errorf("%+v", run)
	}
	if run := observedRun(runtime.End{}, runtime.Limits{}); run.NetworkAttempts != nil || run.FilesWritten != nil || run.PeakMemory != nil {
		t.Errorf("%+v", run)
	}
}
