package container

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// Exit codes with a meaning of their own.
const (
	exitKilled   = 137 // 128 + SIGKILL
	exitContract = 1
	exitFileSize = 153 // 128 + SIGXFSZ: one file went over the disk limit
)

// verdict says what the end of a run's sandbox means, as far as its program has no say in it.
type verdict struct {
	run     *run.Run
	machine *machine
	program program
	saved   *saved
}

func (v *verdict) measure(end runtime.End) {
	if end.Reported && v.saved.Slot.Number == 0 { // else it tells of other runs as well
		v.run.Record.Usage = usageOf(end.Report, v.ranFor(end))
	}
}

// ranFor returns how long the attempt's program ran; 0: that isn't known.
func (v *verdict) ranFor(end runtime.End) time.Duration {
	if v.run.Record.StartedAt == nil {
		return 0
	}
	return max(end.FinishedAt.Sub(*v.run.Record.StartedAt), 0)
}

// usageOf is what the init reported of a program that ran for so long.
func usageOf(r initreport.Report, ran time.Duration) *api.Usage {
	usage := &api.Usage{
		CPUSeconds: r.CPUSeconds, PeakMemoryBytes: r.PeakMemoryBytes,
		MemoryBytes: known(r.MemoryBytes), DiskReadBytes: known(r.DiskReadBytes),
		DiskWriteBytes: known(r.DiskWriteBytes),
	}
	if ran >= time.Millisecond {
		usage.CPUPercent = math.Round(r.CPUSeconds/ran.Seconds()*1000) / 10
	}
	return usage
}

// known returns what the init counted; nil: the kernel didn't tell.
func known(n int64) *int64 {
	if n == initreport.NotCounted {
		return nil
	}
	return &n
}

// stopped returns the result of a run that AOD stopped.
func stopped(end runtime.End, limits runtime.Limits) (run.Result, bool) {
	var over *runtime.LimitError
	var full *runtime.DiskFullError
	switch {
	case end.Cause == nil:
		return run.Result{}, false
	case errors.As(end.Cause, &over):
		return exceeded(end.ExitCode, over), true
	case errors.As(end.Cause, &full):
		return diskFull(end.ExitCode, "the run was stopped: "+full.Error()), true
	case errors.Is(end.Cause, run.ErrTimeout):
		return run.TimedOut(&end.ExitCode, limits.Timeout), true
	}
	return run.Stopped(&end.ExitCode, end.Cause), true
}

// died returns the result of a run whose program was killed or never started.
func (v *verdict) died(end runtime.End, limits runtime.Limits) (run.Result, bool) {
	switch {
	case end.ExitCode == 0:
		return run.Result{}, false
	case end.OOMKilled || end.Report.OOMKills > 0:
		return run.Failed(api.OutOfMemory, exitKilled, &api.RunError{
			Category: api.CategoryAgent, Kind: "memory_limit",
			Message: fmt.Sprintf("the %s was killed at its memory limit of %s", v.program.noun(),
				megabytes(limits.MemoryBytes)),
			Hint: "raise limits.memory in agent.yaml if it needs that much",
		}), true
	case end.Outside:
		return run.Failed(api.SystemError, end.ExitCode, &api.RunError{
			Category: api.CategoryTransient, Kind: "stopped_outside",
			Message: fmt.Sprintf("the container was stopped from outside (exit code %d)", end.ExitCode),
			Hint:    "somebody, or the engine when it was shut down, stopped it; run it again",
		}), true
	case end.Report.StartError != "":
		return run.Failed(api.StartFailed, end.ExitCode, v.notStarted(end.Report.StartError)), true
	case end.Report.PIDsLimitHits > 0:
		return exceeded(end.ExitCode, &runtime.LimitError{
			Limit: "pids",
			Message: fmt.Sprintf("the %s failed (exit code %d) at its limit of %d processes and threads",
				v.program.noun(), end.ExitCode, limits.PIDs),
			Hint: "raise limits.pids in agent.yaml if it needs that many",
		}), true
	case end.ExitCode == exitFileSize:
		return exceeded(end.ExitCode, v.program.wroteTooMuch(limits)), true
	case end.Refused != nil:
		return exceeded(end.ExitCode, end.Refused), true
	}
	return run.Result{}, false
}

// notStarted says why the program was not started.
func (v *verdict) notStarted(why string) *api.RunError {
	if v.run.Unit.Kind == unit.Agent {
		return notInImage(v.run.Record.Image.Ref, why)
	}
	return &api.RunError{
		Category: api.CategoryPermanent, Kind: string(api.StartFailed),
		Message: "the image's program could not be started: " + why, Hint: startHint(why),
	}
}

// startHint says what to do about a program that the init could not start.
func startHint(why string) string {
	if noProgram.in(why) {
		return noProgram.hint
	}
	return "check CMD and ENTRYPOINT of the Dockerfile"
}

// metFullDisk reports whether a disk of the host was full while the program ran.
func (v *verdict) metFullDisk() bool {
	began := v.run.Record.StartedAt
	return began != nil && v.machine.home.Disks.FullSince(*began)
}

// afterFullDisk is the result of a run whose program met a full disk. One that failed may have
// failed for any reason: it gets another chance. One that succeeded may have written less than
// it believes.
func (v *verdict) afterFullDisk(end runtime.End, result run.Result) run.Result {
	if result.Outcome != api.Success {
		return diskFull(end.ExitCode, "the run failed while the host's disk was full: "+result.Reason())
	}
	v.run.Warn("the host's disk was full while the %s ran: its output may be cut off, if it doesn't check "+
		"what it writes",
		v.program.noun())
	return result
}

// diskFull is the result of a run that met the end of the host's disk, which isn't its fault.
func diskFull(exit int, message string) run.Result {
	if exit == 0 {
		exit = exitContract
	}
	return run.Failed(api.SystemError, exit, &api.RunError{
		Category: api.CategoryTransient, Kind: api.KindDiskFull, Message: message,
		Hint: "make room on the host's disk, for example with `aod prune`, and run it again",
	})
}

func exceeded(exit int, over *runtime.LimitError) run.Result {
	if exit == 0 {
		exit = exitContract
	}
	return run.Failed(api.LimitExceeded, exit, &api.RunError{
		Category: api.CategoryAgent, Kind: over.Limit + "_limit", Message: over.Message, Hint: over.Hint,
	})
}

// noteLimits warns of limits that a successful program reached.
func (v *verdict) noteLimits(end runtime.End) {
	if end.Report.OOMKills > 0 {
		v.run.Warn("a process of the %s was killed at the memory limit (limits.memory)", v.program.noun())
	}
	if end.Report.PIDsLimitHits > 0 {
		v.run.Warn("the %s met its limit of processes and threads (limits.pids)", v.program.noun())
	}
	if end.Refused != nil {
		v.run.Warn("the %s met its disk limit (limits.output)", v.program.noun())
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
