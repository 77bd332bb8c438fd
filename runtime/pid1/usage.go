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

// traffic is what was read from and written to disks, in bytes of all devices, or
// initreport.NotCounted.
type traffic struct{ read, written int64 }

// The files with the traffic, best first. Those of version 1 have lines "8:0 Read 4096", those
// of version 2 have "8:0 rbytes=4096 wbytes=0". An old kernel doesn't add up groups below.
var (
	diskFiles1 = []string{"blkio/blkio.throttle.io_service_bytes_recursive", "blkio/blkio.throttle.io_service_bytes"}
	diskFiles2 = []string{"io.stat", "unified/io.stat"}
)

// diskTraffic adds up the devices. Who has done nothing yet has an empty file.
func diskTraffic(root string) traffic {
	for _, file := range diskFiles2 {
		if path := root + "/" + file; isThere(path) && !wholeMachine(path) {
			return sumDevices(path, "rbytes=", "wbytes=")
		}
	}
	for _, file := range diskFiles1 {
		if path := root + "/" + file; isThere(path) {
			return sumDevices(path, "Read ", "Write ")
		}
	}
	return traffic{initreport.NotCounted, initreport.NotCounted}
}

func isThere(path string) bool {
	const readable = 4
	return syscall.Access(path, readable) == nil
}

// sumDevices adds up the numbers behind two names. What can't be read isn't counted.
func sumDevices(path, read, written string) (sum traffic) {
	var buf [16 << 10]byte
	for line := range strings.Lines(string(readSmall(path, buf[:]))) {
		sum.read += after(line, " "+read)
		sum.written += after(line, " "+written)
	}
	return sum
}

// after returns the number behind a name, or 0.
func after(line, name string) int64 {
	_, number, _ := strings.Cut(line, name)
	number, _, _ = strings.Cut(strings.TrimSuffix(number, "\n"), " ")
	n, _ := natural(number)
	return max(n, 0)
}

// filesLeft counts the entries of directories, whatever they are and not what is below them:
// it is to be known whether something was left, and a program may have left a million.
func filesLeft(dirs ...string) int64 {
	left := int64(0)
	for _, dir := range dirs {
		n := entries(dir, initreport.MaxFilesLeft-left)
		if n == initreport.NotCounted {
			return n
		}
		left += n
	}
	return left
}

// entries counts up to a limit. A directory that isn't there has none.
func entries(dir string, limit int64) int64 {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err == syscall.ENOENT {
		return 0
	}
	if err != nil {
		return initreport.NotCounted
	}
	defer syscall.Close(fd) //nolint:errcheck // nothing was written
	var buf [4096]byte
	found := int64(0)
	for found < limit {
		n, err := syscall.ReadDirent(fd, buf[:])
		if err != nil {
			return initreport.NotCounted
		}
		if n <= 0 {
			return found
		}
		_, names, _ := syscall.ParseDirent(buf[:n], -1, nil) // . and .. are left out
		found += int64(names)
	}
	return limit
}

// procNet is where the kernel tells of our network namespace, which has no other process
// than the container's.
const procNet = "/proc/net"

// attempts are the counters of which each attempt at the network moves one. In a namespace
// without a way out a connection and a datagram have no route; to the namespace's own
// addresses, such as a resolver that isn't there, both come off. TCP counts for IPv4 and
// IPv6 together. Where IPv6 is switched off nothing counts what is tried by it.
var attempts = []struct{ table, key string }{
	{"Ip:", "OutNoRoutes"},
	{"Tcp:", "ActiveOpens"},
	{"Udp:", "OutDatagrams"},
}

var attempts6 = []string{"Ip6OutNoRoutes", "Udp6OutDatagrams"}

// netAttempts adds up what was tried. Our own relay opens none of these: it is listened to,
// and speaks to a socket of the file system.
func netAttempts(dir string) int64 {
	var buf [8 << 10]byte
	tables := string(readSmall(dir+"/snmp", buf[:]))
	sum := int64(0)
	for _, a := range attempts {
		n, ok := column(tables, a.table, a.key)
		if !ok {
			return initreport.NotCounted
		}
		sum += n
	}
	for line := range strings.Lines(string(readSmall(dir+"/snmp6", buf[:]))) { // missing without IPv6
		fields := strings.Fields(line)
		for _, key := range attempts6 {
			if len(fields) == 2 && fields[0] == key {
				n, _ := natural(fields[1])
				sum += n
			}
		}
	}
	return sum
}

// column returns a number of a table of two lines: the first has the names.
func column(tables, table, key string) (int64, bool) {
	var names []string
	for line := range strings.Lines(tables) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] != table:
		case names == nil:
			names = fields
		default:
			return under(names, fields, key)
		}
	}
	return 0, false
}

func under(names, values []string, key string) (int64, bool) {
	for i, name := range names {
		if name == key && i < len(values) {
			return natural(values[i])
		}
	}
	return 0, false
}

// readSmall returns the start of a kernel file, at most len(buf) bytes, without the
// final newline; nil when it can't be read. Such files come in one read.
func readSmall(path string, buf []byte) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd) //nolint:errcheck // nothing was written
	n, err := syscall.Read(fd, buf)
	if err != nil || n <= 0 {
		return nil
	}
	return []byte(strings.TrimRight(string(buf[:n]), "\n"))
}
