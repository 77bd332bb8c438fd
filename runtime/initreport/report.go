// Package initreport is the report that the sandbox's init leaves behind: how the main program ended and what the
// container used. It also has the paths, words and limits on which the init and its host must agree.
//
// The init (runtime/pid1) fills a Report and calls Append. The host reads it with initbin.ParseReport, from the file or
// from the connection. The package must not import encoding/json, fmt and the like: everything that it imports becomes
// part of every sandbox's PID 1.
//
// It must not know sandboxes.
//
// Its Go API may change with every release: see docs/stability.md.
package initreport

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Path is the report file in the container. Without a file there, and at RemotePath, init
// writes no report.
const Path = "/run/aod/report"

// InitPath is where a sandbox has its init: what its process 1 is started as.
const InitPath = "/run/aod/init"

// RemotePath is the report file with an engine that doesn't see the orchestrator's files: a
// directory can be mounted there, but no single file.
const RemotePath = "/run/aod/reach/report"

// ControlPath is the socket at which a host listens for the init (-control, -park), beside
// the capsule API's socket.
const ControlPath = "/run/aod/init.sock"

// Ready is the first message of init there, before the program exists. Its last message is the
// report, when everything else in the container is dead; then it closes the connection.
const Ready = "ready\n"

// The limits of a start message to a parked init: the size of its length field, and how many
// bytes and texts may follow. Init keeps all of them in 6 MB.
const (
	StartHeadBytes = 4
	MaxStartBytes  = 1 << 20
	MaxStartTexts  = 1 << 12
)

// Init ends stdout and stderr of the container with a line each (-end), when everything else is dead:
// EndHead, Report.LogEnd, EndTail. Who reads a stream knows then that it has all.
const (
	EndHead = "\x1eaod-log-end "
	EndTail = "\x1e\n"
	// EndIDBytes is the length of Report.LogEnd, which nobody knows before: no program can write
	// its line.
	EndIDBytes = 32
)

// FeedHeader is the length in bytes of the number, big-endian, with which a stdin that grows
// (-feed) begins: how many bytes behind it are the program's.
const FeedHeader = 8

// Version is the format's version.
const Version = 1

// Begun is the file's content from the start of init until the report. An init that finds any
// content runs nothing: its container ran before.
const Begun = "begun"

// MaxStartError is the longest StartError in bytes; Append cuts a longer one.
const MaxStartError = 512

// MaxBytes is larger than any report.
const MaxBytes = 64 << 10

// NotCounted stands in Report.MemoryBytes, DiskReadBytes, DiskWriteBytes, StdinTaken,
// NetAttempts and FilesLeft where the kernel doesn't tell.
const NotCounted = -1

// MaxFilesLeft is the largest Report.FilesLeft: counting ends there.
const MaxFilesLeft = 1000

// MaxTried is the largest Report.WritesTried and ListensTried: counting ends there.
const MaxTried = 1000

// Source says who counted Report.CPUSeconds.
type Source string

// The sources. A counter that its source doesn't have is 0.
const (
	Cgroup1 Source = "cgroup1" // the container's version 1 control groups
	Cgroup2 Source = "cgroup2" // its version 2 control group
	Rusage  Source = "rusage"  // getrusage(2) of all reaped processes
)

// Report is what init knows at the end of a sandbox.
//
// It is advice, not evidence: init writes it when everything else in the container is
// dead, but if init itself was killed, the file holds whatever the capsule put there.
type Report struct {
	Version  int `json:"version"`
	ExitCode int `json:"exit_code"` // init's own: the program's, 128+Signal, or 125 to 127
	Signal   int `json:"signal"`    // that ended the main program; 0 for none
	// StartError says why the main program could not be started; empty when it was.
	StartError string `json:"start_error"`
	// Terminated says that init was sent SIGTERM or SIGINT before the main program
	// ended, and passed it on.
	Terminated bool `json:"terminated"`
	// Abandoned says that a parked init never learnt what to run, because the host closed
	// its connection. It is left out when false.
	Abandoned  bool    `json:"abandoned,omitempty"`
	CPUSeconds float64 `json:"cpu_seconds"` // user and system, all processes
	// PeakMemoryBytes is the container's peak, page cache included. It equals
	// MaxRSSBytes where the kernel keeps no peak (version 2 before Linux 5.19).
	PeakMemoryBytes int64 `json:"peak_memory_bytes"`
	// MemoryBytes is what the container had at the end, page cache included.
	MemoryBytes    int64 `json:"memory_bytes"`
	DiskReadBytes  int64 `json:"disk_read_bytes"` // of all devices; what the page cache had isn't read
	DiskWriteBytes int64 `json:"disk_write_bytes"`
	OOMKills       int64 `json:"oom_kills"`       // processes killed for memory
	PIDsLimitHits  int64 `json:"pids_limit_hits"` // forks refused
	MaxRSSBytes    int64 `json:"max_rss_bytes"`   // of the largest single process
	// StdinTaken is how far the program has read in a stdin that is a file; 0 is also said
	// of one that it opened by its name.
	StdinTaken    int64 `json:"stdin_taken"`
	ProcessesLeft int64 `json:"processes_left"` // that ran on when the main program had ended, and were killed
	// NetAttempts counts the attempts to use the network: connections and datagrams, with or
	// without a route, also to the container itself.
	NetAttempts int64  `json:"net_attempts"`
	FilesLeft   int64  `json:"files_left"` // entries in /tmp and /dev/shm at the end, at most MaxFilesLeft
	Source      Source `json:"source"`
	// Watched says that init was asked to watch the program, and could. The rest is left out
	// where it is false.
	Watched bool `json:"watched,omitempty"`
	// WritesTried counts the calls to make, change or remove a file, also those that were
	// refused; ListensTried those to listen or to take an address of the internet. Both are at
	// most MaxTried.
	WritesTried  int64 `json:"writes_tried,omitempty"`
	ListensTried int64 `json:"listens_tried,omitempty"`
	// LogEnd is what the last line of both streams says, see EndHead. It is left out where there is
	// none.
	LogEnd string `json:"log_end,omitempty"`
}

// Append appends the report as JSON to b. The form is canonical: equal reports give
// equal bytes, without spaces and in the order of the fields.
func (r Report) Append(b []byte) []byte {
	b = appendInt(b, `{"version":`, int64(r.Version))
	b = appendInt(b, `,"exit_code":`, int64(r.ExitCode))
	b = appendInt(b, `,"signal":`, int64(r.Signal))
	b = appendString(b, `,"start_error":`, cut(r.StartError, MaxStartError))
	b = strconv.AppendBool(append(b, `,"terminated":`...), r.Terminated)
	if r.Abandoned {
		b = append(b, `,"abandoned":true`...)
	}
	b = append(b, `,"cpu_seconds":`...)
	b = strconv.AppendFloat(b, r.CPUSeconds, 'f', 6, 64)
	b = appendInt(b, `,"peak_memory_bytes":`, r.PeakMemoryBytes)
	b = appendInt(b, `,"memory_bytes":`, r.MemoryBytes)
	b = appendInt(b, `,"disk_read_bytes":`, r.DiskReadBytes)
	b = appendInt(b, `,"disk_write_bytes":`, r.DiskWriteBytes)
	b = appendInt(b, `,"oom_kills":`, r.OOMKills)
	b = appendInt(b, `,"pids_limit_hits":`, r.PIDsLimitHits)
	b = appendInt(b, `,"max_rss_bytes":`, r.MaxRSSBytes)
	b = appendInt(b, `,"stdin_taken":`, r.StdinTaken)
	b = appendInt(b, `,"processes_left":`, r.ProcessesLeft)
	b = appendInt(b, `,"net_attempts":`, r.NetAttempts)
	b = appendInt(b, `,"files_left":`, r.FilesLeft)
	b = appendString(b, `,"source":`, string(r.Source))
	if r.Watched {
		b = append(b, `,"watched":true`...)
		b = appendInt(b, `,"writes_tried":`, r.WritesTried)
		b = appendInt(b, `,"listens_tried":`, r.ListensTried)
	}
	if r.LogEnd != "" {
		b = appendString(b, `,"log_end":`, r.LogEnd)
	}
	return append(b, '}')
}

func appendInt(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(b, key...), n, 10)
}

// appendString writes a JSON string; bytes that aren't UTF-8 become U+FFFD.
func appendString(b []byte, key, s string) []byte {
	b = append(append(b, key...), '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

const hex = "0123456789abcdef"

// cut shortens valid UTF-8 made of s to at most n bytes.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
