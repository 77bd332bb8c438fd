//go:build linux

package pid1

import (
	"strings"
	"syscall"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

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
