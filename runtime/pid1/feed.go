//go:build linux

package pid1

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// feedPoll is the time between two looks at the file where no event tells of its changes, as
// under an isolation runtime.
const feedPoll = 100_000_000 // nanoseconds

// feeder copies a file that grows into a pipe. Unlike a pipe from the host, the file says what
// was given to the program, also when the process that gave it was killed.
type feeder struct {
	file, events int
	pipe         int // its writing end
}

// openFeed opens the file, and returns the reading end of the pipe.
func openFeed(path string) (f feeder, stdin uintptr, err error) {
	if f.file, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0); err != nil {
		return f, 0, err
	}
	if f.events, err = syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK); err == nil {
		_, err = syscall.InotifyAddWatch(f.events, path, syscall.IN_MODIFY)
	}
	if err != nil {
		f.events = -1 // it is looked at now and then
	}
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return f, 0, err
	}
	f.pipe = ends[1]
	return f, uintptr(ends[0]), nil
}

// run copies until the program closes its end. It ends with the process otherwise.
func (f feeder) run() {
	defer func() { _ = syscall.Close(f.pipe) }()
	var chunk [32 << 10]byte
	for at := int64(0); ; {
		for left := f.committed() - at; left > 0; {
			n, err := syscall.Pread(f.file, chunk[:min(left, int64(len(chunk)))], initreport.FeedHeader+at)
			if err != nil || n <= 0 || !f.write(chunk[:n]) {
				return
			}
			at, left = at+int64(n), left-int64(n)
		}
		f.await()
	}
}

// committed returns how many bytes of the file are the program's. Those behind may be half of
// what is being written.
func (f feeder) committed() int64 {
	var head [initreport.FeedHeader]byte
	if n, err := syscall.Pread(f.file, head[:], 0); err != nil || n < len(head) {
		return 0
	}
	return int64(binary.BigEndian.Uint64(head[:])) //nolint:gosec // the host bounds it
}

func (f feeder) write(b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Write(f.pipe, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return false
		}
		b = b[n:]
	}
	return true
}

// await returns when the file has changed, or after a while.
func (f feeder) await() {
	const pollIn = 1
	pause := syscall.NsecToTimespec(feedPoll)
	fd := struct {
		fd              int32
		events, revents int16
	}{int32(f.events), pollIn, 0} //nolint:gosec // a descriptor
	_, _, _ = syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fd)), 1, //nolint:gosec // how ppoll takes it
		uintptr(unsafe.Pointer(&pause)), 0, 0, 0) //nolint:gosec // likewise
	var drained [4096]byte
	_, _ = syscall.Read(f.events, drained[:])
}
