//go:build linux

package pid1

import (
	"strconv"
	"strings"
	"syscall"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// cgroupRoot is where containers see their own control groups.
const cgroupRoot = "/sys/fs/cgroup"

// usage is what the container has used.
type usage struct {
	cpuSeconds    float64
	source        initreport.Source // of cpuSeconds
	peakMemory    int64
	memory        int64 // at the end
	disk          traffic
	oomKills      int64
	pidsLimitHits int64
	maxRSS        int64
	netAttempts   int64
	filesLeft     int64
}

// counter is one number in one file of a control group.
type counter struct {
	source initreport.Source
	file   string  // below the root
	key    string  // of the line "key number"; "" when the file is the number
	second float64 // of CPU counters: units in a second
}

// The places of each number, best first. On a hybrid system a controller is in one of
// the two hierarchies, and the second one hangs at "unified". The order of names in
// "cpu,cpuacct" is the distribution's choice.
var (
	cpuCounters = []counter{
		{initreport.Cgroup2, "cpu.stat", "usage_usec", 1e6},
		{initreport.Cgroup1, "cpuacct/cpuacct.usage", "", 1e9},
		{initreport.Cgroup1, "cpu,cpuacct/cpuacct.usage", "", 1e9},
		{initreport.Cgroup1, "cpuacct,cpu/cpuacct.usage", "", 1e9},
		{initreport.Cgroup2, "unified/cpu.stat", "usage_usec", 1e6},
	}
	memoryCounters = []counter{
		{source: initreport.Cgroup2, file: "memory.peak"},
		{source: initreport.Cgroup1, file: "memory/memory.max_usage_in_bytes"},
		{source: initreport.Cgroup2, file: "unified/memory.peak"},
	}
	memoryNowCounters = []counter{
		{source: initreport.Cgroup2, file: "memory.current"},
		{source: initreport.Cgroup1, file: "memory/memory.usage_in_bytes"},
		{source: initreport.Cgroup2, file: "unified/memory.current"},
	}
	oomCounters = []counter{
		{source: initreport.Cgroup2, file: "memory.events", key: "oom_kill"},
		{source: initreport.Cgroup1, file: "memory/memory.oom_control", key: "oom_kill"},
		{source: initreport.Cgroup2, file: "unified/memory.events", key: "oom_kill"},
	}
	pidsCounters = []counter{
		{source: initreport.Cgroup2, file: "pids.events", key: "max"},
		{source: initreport.Cgroup1, file: "pids/pids.events", key: "max"},
		{source: initreport.Cgroup2, file: "unified/pids.events", key: "max"},
	}
)

// readUsage is called when nothing is left that could use more.
func readUsage(root string) usage {
	u := readCounters(root)
	u.netAttempts, u.filesLeft = netAttempts(procNet), filesLeft("/tmp", "/dev/shm")
	return u
}

// readCounters takes each number from the control groups, or what getrusage knows of the
// reaped processes where there is none.
func readCounters(root string) usage {
	u := rusage()
	if c, n, ok := first(root, cpuCounters); ok {
		u.cpuSeconds, u.source = float64(n)/c.second, c.source
	}
	if _, n, ok := first(root, memoryCounters); ok {
		u.peakMemory = n
	}
	u.memory, u.disk = initreport.NotCounted, diskTraffic(root)
	if _, n, ok := first(root, memoryNowCounters); ok {
		u.memory = n
	}
	_, u.oomKills, _ = first(root, oomCounters)
	_, u.pidsLimitHits, _ = first(root, pidsCounters)
	return u
}

func rusage() usage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r); err != nil {
		return usage{source: initreport.Rusage}
	}
	rss := r.Maxrss * 1024
	return usage{
		cpuSeconds: float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9,
		source:     initreport.Rusage,
		peakMemory: rss,
		maxRSS:     rss,
	}
}

func first(root string, counters []counter) (counter, int64, bool) {
	for _, c := range counters {
		if n, ok := c.read(root); ok {
			return c, n, true
		}
	}
	return counter{}, 0, false
}

func (c counter) read(root string) (int64, bool) {
	path := root + "/" + c.file
	if c.source == initreport.Cgroup2 && wholeMachine(path) {
		return 0, false
	}
	var buf [4096]byte
	return find(string(readSmall(path, buf[:])), c.key)
}

// wholeMachine reports whether a version 2 file belongs to the root group, which a
// container with the host's group namespace sees: only groups below have a type.
func wholeMachine(path string) bool {
	return syscall.Access(path[:strings.LastIndexByte(path, '/')]+"/cgroup.type", 0) != nil
}

func find(content, key string) (int64, bool) {
	for line := range strings.Lines(content) {
		line = strings.TrimSuffix(line, "\n")
		if key == "" {
			return natural(line)
		}
		if k, v, ok := strings.Cut(line, " "); ok && k == key {
			return natural(v)
		}
	}
	return 0, false
}

func natural(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}
