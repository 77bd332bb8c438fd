//go:build linux

package pid1

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestReportFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	writeFile(t, target, strings.Repeat("old ", 10_000), 0o644)

	t.Run("is written over whatever was there", func(t *testing.T) {
		f := openReport(target)
		f.write(compose(ending{code: 143, signal: 15}, usage{cpuSeconds: 0.5, source: initreport.Cgroup1, peakMemory: 1, memory: 7, disk: traffic{8, 9}, oomKills: 2, pidsLimitHits: 3, maxRSS: 4, netAttempts: 5, filesLeft: 6}))
		raw, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		want := initreport.Report{
			Version: 1, ExitCode: 143, Signal: 15, CPUSeconds: 0.5, PeakMemoryBytes: 1, MemoryBytes: 7, DiskReadBytes: 8, DiskWriteBytes: 9,
			OOMKills: 2, PIDsLimitHits: 3, MaxRSSBytes: 4, NetAttempts: 5, FilesLeft: 6, Source: initreport.Cgroup1,
		}
		if got, err := initbin.ParseReport(raw); err != nil || got != want {
			t.Errorf("got %+v, %v", got, err)
		}
	})

	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"that is missing is not made":      filepath.Join(dir, "missing"),
		"that is a link is not followed":   link,
		"that is a pipe is not opened":     fifo,
		"that is a directory isn't a file": dir,
		"that is a device is not written":  "/dev/null",
	} {
		t.Run(name, func(t *testing.T) {
			if f := openReport(path); f != -1 {
				t.Errorf("%s was opened", path)
			}
		})
	}
	reportFile(-1).write(nil)
}
