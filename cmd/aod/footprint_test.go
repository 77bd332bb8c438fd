package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
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
	eventually(l.t, fmt.Sprintf("the server holds no more than %+v", before), func() bool {
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
func (l *load) metric(name string) int {
	l.t.Helper()
	response, err := l.get(context.Background(), "/metrics", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	defer response.Body.Close()
	sum := 0.0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if base, _, _ := strings.Cut(series, "{"); base == name {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				l.t.Fatal(err)
			}
			sum += n
		}
	}
	return int(sum)
}

var peakRule = regexp.MustCompile(`VmHWM:\s+([0-9]+) kB`)

// peakMemory is the most that the process has ever had in memory, in bytes.
func (l *load) peakMemory() int {
	l.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.process.Process.Pid))
	if err != nil {
		l.t.Fatal(err)
	}
	parts := peakRule.FindSubmatch(status)
	if parts == nil {
		l.t.Fatalf("no peak in %s", status)
	}
	kilobytes, err := strconv.Atoi(string(parts[1]))
	if err != nil {
		l.t.Fatal(err)
	}
	return kilobytes << 10
}
