package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// footprint is what a process holds.
type footprint struct {
	goroutines, files int
}

func (l *load) footprint() footprint {
	l.t.Helper()
	l.http.CloseIdleConnections()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", l.process.Process.Pid))
	if err != nil {
		l.t.Skipf("there is no /proc to read: %v", err)
	}
	return footprint{goroutines: l.metric("go_goroutines"), files: len(files)}
}

// checkFootprint waits until the server holds no more than before, and looks at the most
// memory that it had. The connections that it spares for the engine, for half a minute,
// may be more than before: far fewer than a leak for each run.
func (l *load) checkFootprint(before footprint, spared int) {
	l.t.Helper()
	var now footprint
	testkit.Eventually(l.t, fmt.Sprintf("the server holds no more than %+v", before), func() bool {
		now = l.footprint()
		return now.goroutines <= before.goroutines+2*spared && now.files <= before.files+spared
	})
	if refused := l.metric("aod_runs_refused_total"); refused != l.refused {
		l.t.Errorf("the metrics tell of %d refusals, there were %d", refused, l.refused)
	}
	peak := l.peakMemory()
	l.t.Logf("before %+v, after %+v, %d MiB of memory at most", before, now, peak>>20)
	if peak > maxMemory {
		l.t.Errorf("the server took %d bytes of memory", peak)
	}
}

// metric is the sum of a metric over all its labels.
func (s *server) metric(name string) int {
	s.t.Helper()
	sum := 0.0
	for line := range strings.Lines(s.metrics()) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if base, _, _ := strings.Cut(series, "{"); base == name {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			sum += n
		}
	}
	return int(sum)
}

var (
	memoryRule = regexp.MustCompile(`VmRSS:\s+([0-9]+) kB`)
	peakRule   = regexp.MustCompile(`VmHWM:\s+([0-9]+) kB`)
)

// peakMemory is the most that the process has ever had in memory, in bytes.
func (s *server) peakMemory() int { return s.memory(peakRule) }

// memoryNow is what the process has in memory, in bytes.
func (s *server) memoryNow() int { return s.memory(memoryRule) }

// memory returns the bytes that a line of the process's status tells of.
func (s *server) memory(line *regexp.Regexp) int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	parts := line.FindSubmatch(status)
	if err != nil || parts == nil {
		s.t.Fatalf("no memory in %s, %v", status, err)
	}
	kilobytes, err := strconv.Atoi(string(parts[1]))
	if err != nil {
		s.t.Fatal(err)
	}
	return kilobytes << 10
}
