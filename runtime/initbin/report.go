package initbin

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// What lies above is no measurement: a pebibyte, a million events, thirty years.
const (
	maxBytes      = 1 << 50
	maxEvents     = 1 << 50
	maxCPUSeconds = 1e9
	maxSignal     = 64
)

// ParseReport reads a report that init wrote. The capsule shares init's user and may
// have written the file itself, so anything but init's exact form with plausible values
// is refused as Input, more than initreport.MaxBytes as TooLarge, and initreport.Begun,
// which init leaves when it is killed, as NotFound, like nothing at all.
func ParseReport(raw []byte) (initreport.Report, error) {
	switch {
	case len(raw) == 0 || string(raw) == initreport.Begun:
		return initreport.Report{}, fault.New(fault.NotFound, "the sandbox left no report")
	case len(raw) > initreport.MaxBytes:
		return initreport.Report{}, fault.New(fault.TooLarge, "the sandbox's report is over %d bytes",
			initreport.MaxBytes)
	}
	var r initreport.Report
	if err := json.Unmarshal(raw, &r); err != nil {
		return initreport.Report{}, fault.Wrap(fault.Input, err, "the sandbox's report is not valid")
	}
	if !canonical(r, raw) || !plausible(r) {
		return initreport.Report{}, fault.New(fault.Input, "the sandbox's report was not written by its init")
	}
	return r, nil
}

// canonical refuses in one comparison what a JSON decoder lets pass: unknown, missing,
// repeated and differently spelt keys, other number forms, spaces.
func canonical(r initreport.Report, raw []byte) bool {
	return r.CPUSeconds <= maxCPUSeconds && bytes.Equal(r.Append(nil), raw)
}

func plausible(r initreport.Report) bool {
	return r.Version == initreport.Version &&
		plausibleEnd(r) &&
		!math.Signbit(r.CPUSeconds) && r.CPUSeconds <= maxCPUSeconds &&
		within(r.PeakMemoryBytes, maxBytes) &&
		counted(r.MemoryBytes, maxBytes) &&
		counted(r.DiskReadBytes, maxBytes) &&
		counted(r.DiskWriteBytes, maxBytes) &&
		within(r.MaxRSSBytes, maxBytes) &&
		within(r.OOMKills, maxEvents) &&
		within(r.PIDsLimitHits, maxEvents) &&
		counted(r.StdinTaken, maxBytes) &&
		within(r.ProcessesLeft, maxEvents) &&
		counted(r.NetAttempts, maxEvents) &&
		counted(r.FilesLeft, initreport.MaxFilesLeft) &&
		within(r.WritesTried, initreport.MaxTried) &&
		within(r.ListensTried, initreport.MaxTried) &&
		(r.LogEnd == "" || len(r.LogEnd) == initreport.EndIDBytes) &&
		(r.Source == initreport.Cgroup1 || r.Source == initreport.Cgroup2 || r.Source == initreport.Rusage)
}

// plausibleEnd wants exactly one of the four ways to end.
func plausibleEnd(r initreport.Report) bool {
	switch {
	case r.Abandoned:
		return r.ExitCode == 125 && r.Signal == 0 && r.StartError == "" && !r.Terminated
	case r.StartError != "":
		return r.Signal == 0 && r.ExitCode >= 125 && r.ExitCode <= 127
	case r.Signal != 0:
		return within(int64(r.Signal), maxSignal) && r.ExitCode == 128+r.Signal
	}
	return within(int64(r.ExitCode), 255)
}

func within(n, limit int64) bool { return n >= 0 && n <= limit }

func counted(n, limit int64) bool { return n == initreport.NotCounted || within(n, limit) }
