//go:build linux && (amd64 || arm64)

package pid1

import (
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// watcher counts what the program and its children try: writes to files, also those that are
// refused or undone, and sockets that listen. The kernel tells it of these calls before it
// carries them out (seccomp_unotify(2)). Nobody is kept from anything: a program that hides
// what it does isn't found out.
type watcher struct {
	listener uintptr
	writes   atomic.Int64
	listens  atomic.Int64
	asked    notification
	answer   notificationAnswer
	path     [pathBytes]byte // of the caller's memory
	name     [32]byte        // of the file with that
}

// notification and notificationAnswer are the kernel's seccomp_notif and seccomp_notif_resp.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type notificationAnswer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

const (
	notificationReceive = 0xc0502100 // SECCOMP_IOCTL_NOTIF_RECV
	notificationSend    = 0xc0182101 // SECCOMP_IOCTL_NOTIF_SEND
	carryOn             = 1          // SECCOMP_USER_NOTIF_FLAG_CONTINUE
)

// fork is syscall.ForkExec with a filter around the program. The filter belongs to a thread
// that nothing else runs on, from which the program inherits it. Where the kernel has no such
// filter, nothing is watched.
func (w *watcher) fork(path string, argv []string, attr *syscall.ProcAttr) (pid int, watched bool, err error) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // for ever
		watched = w.install()
		pid, err = syscall.ForkExec(path, argv, attr)
		close(done)
		select {}
	}()
	<-done
	if watched {
		go w.serve()
	}
	return pid, watched, err
}

// install puts the filter around this thread.
func (w *watcher) install() bool {
	const (
		noNewPrivs  = 38 // PR_SET_NO_NEW_PRIVS
		setFilter   = 1  // SECCOMP_SET_MODE_FILTER
		newListener = 8  // SECCOMP_FILTER_FLAG_NEW_LISTENER
	)
	filter := watchFilter()
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]} //nolint:gosec // there are a few dozen
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, noNewPrivs, 1, 0); errno != 0 {
		return false
	}
	fd, _, errno := syscall.RawSyscall(sysSeccomp, setFilter, newListener,
		uintptr(unsafe.Pointer(&program))) //nolint:gosec // how seccomp takes it
	w.listener = fd
	return errno == 0
}

// serve answers the kernel until everything else has ended, and then waits for ever.
func (w *watcher) serve() {
	for {
		// the kernel insists
		w.asked = notification{}
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, w.listener, notificationReceive,
			uintptr(unsafe.Pointer(&w.asked))) //nolint:gosec // how ioctl takes it
		if errno == syscall.EINTR || errno == syscall.ENOENT {
			continue // the caller was killed meanwhile
		}
		if errno != 0 {
			return
		}
		counter := w.meant()
		w.answer = notificationAnswer{id: w.asked.id, flags: carryOn}
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, w.listener, notificationSend,
			uintptr(unsafe.Pointer(&w.answer))) //nolint:gosec // how ioctl takes it
		// else a signal came first, and it asks again
		if errno == 0 && counter != nil && counter.Load() < initreport.MaxTried {
			counter.Add(1)
		}
	}
}

// meant returns what a call counts as; nil is nothing.
func (w *watcher) meant() *atomic.Int64 {
	call, known := watchedCalls[w.asked.nr]
	switch {
	case !known:
		return nil
	case call.listens:
		return &w.listens
	case call.binds:
		if w.family(w.asked.args[1]) {
			return &w.listens
		}
		return nil
	case call.how && !w.opensToWrite():
		return nil
	case w.ofNoFile(w.asked.args[call.path]):
		return nil
	}
	return &w.writes
}

// family reports whether an address is the internet's.
func (w *watcher) family(address uint64) bool {
	if w.read(address, 2) < 2 {
		return false
	}
	family := uint16(w.path[0]) | uint16(w.path[1])<<8
	return family == syscall.AF_INET || family == syscall.AF_INET6
}

// opensToWrite reads the flags of openat2, which stand in memory.
func (w *watcher) opensToWrite() bool {
	if w.read(w.asked.args[2], 8) < 8 {
		return false
	}
	flags := uint32(w.path[0]) | uint32(w.path[1])<<8 // those that count are in the first two bytes
	return flags&writingFlags != 0
}

// ofNoFile reports whether a path leads to a device, or to what a process has open, which are
// no files to keep anything in.
func (w *watcher) ofNoFile(address uint64) bool {
	n := w.read(address, pathBytes)
	path := unsafe.String(&w.path[0], n) //nolint:gosec // not kept
	return n == 0 || strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/dev/") &&
		!strings.HasPrefix(path, "/dev/shm/")
}

// pathBytes are enough of a path to see where it leads.
const pathBytes = 16

// read reads up to n bytes of the caller's memory. It allocates nothing, since nothing is ever
// collected here.
func (w *watcher) read(address uint64, n int) int {
	name := append(strconv.AppendUint(append(w.name[:0], "/proc/"...), uint64(w.asked.pid), 10), "/mem\x00"...)
	// AT_FDCWD
	here := -100
	fd, _, errno := syscall.Syscall6(syscall.SYS_OPENAT, uintptr(here),
		uintptr(unsafe.Pointer(&name[0])), //nolint:gosec // how openat takes it
		syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	defer syscall.Close(int(fd)) //nolint:errcheck // nothing was written
	//nolint:gosec // no address of a program is beyond that
	got, err := syscall.Pread(int(fd), w.path[:n], int64(address))
	if err != nil {
		return 0
	}
	return got
}

// watchedCall says what a system call that the kernel tells of is about.
type watchedCall struct {
	path    int  // the argument that is the path
	flags   int  // the argument with the flags of an open; 0: it always writes
	how     bool // the flags stand in memory
	binds   bool
	listens bool
}

// writingFlags are those of an open that changes something: O_WRONLY, O_RDWR, O_CREAT, O_TRUNC.
const writingFlags = syscall.O_WRONLY | syscall.O_RDWR | syscall.O_CREAT | syscall.O_TRUNC

// What a filter returns (seccomp(2)), and where it finds the call (struct seccomp_data).
const (
	filterAllow  = 0x7fff0000
	filterNotify = 0x7fc00000

	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// watchFilter is the filter's program: the calls of the table are notified, an open only if it
// would write, everything else is let through.
func watchFilter() []syscall.SockFilter {
	const load, equal, anySet, give = syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS,
		syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, syscall.BPF_JMP | syscall.BPF_JSET | syscall.BPF_K,
		syscall.BPF_RET | syscall.BPF_K
	filter := []syscall.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, Jt: 1, K: auditArch},
		{Code: give, K: filterAllow},
	}
	for number, call := range watchedCalls {
		filter = append(filter,
			syscall.SockFilter{Code: load, K: offsetNumber},
			syscall.SockFilter{Code: equal, Jf: 3, K: uint32(number)}, //nolint:gosec // none is negative
		)
		test := syscall.SockFilter{Code: anySet, Jf: 0, Jt: 0, K: 0} // both lead on
		if call.flags > 0 {
			test = syscall.SockFilter{Code: anySet, Jf: 1, K: writingFlags}
		}
		filter = append(filter,
			syscall.SockFilter{Code: load, K: offsetArgs + 8*uint32(call.flags)}, //nolint:gosec // one of six
			test,
			syscall.SockFilter{Code: give, K: filterNotify},
		)
	}
	return append(filter, syscall.SockFilter{Code: give, K: filterAllow})
}
