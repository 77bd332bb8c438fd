package container

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/capsule/au/check"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// stderrText collects a program's stderr, up to the limit of the log.
type stderrText struct {
	limit int64
	text  bytes.Buffer
}

func (s *stderrText) add(line runtime.LogLine) {
	if line.Stream == "stderr" {
		s.text.WriteString(line.Text + "\n")
	}
}

// bytes returns the text and its size in bytes. If the log was cut, the size is only known to
// exceed the limit, and is the least such number.
func (s *stderrText) bytes(cut bool) (text []byte, size int64) {
	size = int64(s.text.Len())
	if cut {
		size = max(size, s.limit) + 1
	}
	return s.text.Bytes(), size
}

// endedByOthers returns an error if the caller or somebody outside ended the trial, which
// then shows nothing.
func endedByOthers(end runtime.End) error {
	var over *runtime.LimitError
	switch {
	case end.Outside:
		return fault.New(fault.Unavailable, "the unit's container was stopped from outside").WithHint("try it again")
	case end.Cause == nil, errors.Is(end.Cause, run.ErrTimeout), errors.As(end.Cause, &over):
		return nil
	}
	return end.Cause
}

// observedRun converts the end of a sandbox to an observation of its program.
func observedRun(end runtime.End, limits runtime.Limits) check.Run {
	run := check.Run{
		ExitCode: end.ExitCode,
		TimedOut: errors.Is(end.Cause, run.ErrTimeout),
		// A program that outlives its own child has come to an end in order.
		OutOfMemory: end.ExitCode == exitKilled && (end.OOMKilled || end.Report.OOMKills > 0),
		StartError:  end.Report.StartError,
	}
	if !end.StartedAt.IsZero() && end.FinishedAt.After(end.StartedAt) {
		run.Duration = end.FinishedAt.Sub(end.StartedAt)
	}
	if end.Reported {
		peak := peakMemory(end.Report, limits.MemoryBytes)
		run.PeakMemory = &peak
		left := int(end.Report.ProcessesLeft)
		run.ProcessesLeft = &left
		// a program may have opened it by its name, which moves nothing here
		if taken := end.Report.StdinTaken; taken > 0 {
			run.StdinTaken = &taken
		}
		run.NetworkAttempts, run.FilesWritten = counted(end.Report.NetAttempts), counted(end.Report.FilesLeft)
		if end.Report.Watched {
			run.WritesTried, run.Listened = counted(end.Report.WritesTried), counted(end.Report.ListensTried)
		}
	}
	return run
}

// peakMemory returns the program's peak of memory in bytes. The container's peak includes the
// page cache of files, so a peak at the limit proves nothing if no process was killed for it.
func peakMemory(report initreport.Report, limit int64) int64 {
	if report.PeakMemoryBytes >= limit && report.OOMKills == 0 {
		return min(report.MaxRSSBytes, report.PeakMemoryBytes)
	}
	return report.PeakMemoryBytes
}

func counted(n int64) *int {
	if n == initreport.NotCounted {
		return nil
	}
	count := int(n)
	return &count
}

// printed reads a unit's stdout, up to one byte more than the limit.
func printed(layout runtime.Layout) ([]byte, error) {
	f, err := layout.OpenStdout()
	if err != nil {
		return nil, fmt.Errorf("read stdout: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	raw, err := io.ReadAll(io.LimitReader(f, au.MaxOutputBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read stdout: %w", err)
	}
	return raw, nil
}
