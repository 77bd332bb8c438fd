//go:build linux

package pid1

import (
	"syscall"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// reportFile is the open report, or -1.
type reportFile int

// openReport opens the file before the program could put something else in its place.
// Only a regular file will do; O_NONBLOCK because opening anything else might block.
func openReport(path string) reportFile {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return -1
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		_ = syscall.Close(fd)
		return -1
	}
	return reportFile(fd)
}

// begin marks the file and reports whether this is the container's first start: whoever
// asked for a second one doesn't know that the program has run already.
func (f reportFile) begin() bool {
	if f < 0 {
		return true
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f), &st); err == nil && st.Size > 0 {
		return false
	}
	_, _ = syscall.Pwrite(int(f), []byte(initreport.Begun), 0) // a full disk is no reason not to run
	return true
}

// compose is the report, as it is written and sent.
func compose(end ending, u usage) []byte {
	report := initreport.Report{
		Version:         initreport.Version,
		ExitCode:        end.code,
		Signal:          end.signal,
		StartError:      end.startError,
		Terminated:      end.terminated,
		Abandoned:       end.abandoned,
		CPUSeconds:      u.cpuSeconds,
		PeakMemoryBytes: u.peakMemory,
		MemoryBytes:     u.memory,
		DiskReadBytes:   u.disk.read,
		DiskWriteBytes:  u.disk.written,
		OOMKills:        u.oomKills,
		PIDsLimitHits:   u.pidsLimitHits,
		MaxRSSBytes:     u.maxRSS,
		StdinTaken:      end.stdinTaken,
		ProcessesLeft:   end.processesLeft,
		NetAttempts:     u.netAttempts,
		FilesLeft:       u.filesLeft,
		Source:          u.source,
		LogEnd:          end.logEnd,
	}
	if w := end.watcher; w != nil {
		report.Watched, report.WritesTried, report.ListensTried = true, w.writes.Load(), w.listens.Load()
	}
	return report.Append(nil)
}

// write replaces whatever the program has left in the file. A report that can't be
// written is missing, and the host makes do without.
func (f reportFile) write(raw []byte) {
	if f < 0 {
		return
	}
	_ = syscall.Ftruncate(int(f), 0)
	_, _ = syscall.Pwrite(int(f), raw, 0)
}
