//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// badDisk fails calls of a program that write to a directory, as a disk with errors does. The
// kernel asks it before it carries them out (seccomp_unotify(2)), so that the program, SQLite in
// it, runs as ever.
type badDisk struct {
	t        *testing.T
	below    string
	listener uintptr

	mu     sync.Mutex
	skip   int      // calls that go well before the next error
	errors int      // that are to come
	failed []string // calls, and the names of their files
}

// writing are the calls that can fail, with the argument that is the file.
var writing = map[int32]struct {
	name string
	file int
}{
	unix.SYS_WRITE: {"write", 0}, unix.SYS_PWRITE64: {"pwrite", 0}, unix.SYS_FSYNC: {"fsync", 0}, unix.SYS_FDATASYNC: {"fdatasync", 0},
	unix.SYS_SYNCFS: {"syncfs", 0}, unix.SYS_FTRUNCATE: {"ftruncate", 0}, unix.SYS_COPY_FILE_RANGE: {"copy_file_range", 2},
}

// next has some calls go well, and then some fail.
func (d *badDisk) next(skip, errors int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.skip, d.errors, d.failed = skip, errors, nil
}

// rest ends the errors, and returns those that there were.
func (d *badDisk) rest() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errors = 0
	return d.failed
}

// start starts a program over the disk.
func (d *badDisk) start(process *exec.Cmd) error {
	started := make(chan error)
	go func() {
		goruntime.LockOSThread() // for ever: the filter is this thread's and its children's
		if errno := d.install(); errno != 0 {
			started <- errno
			return
		}
		go d.serve()
		started <- process.Start()
		select {}
	}()
	err := <-started
	if errno, ok := err.(syscall.Errno); ok { //nolint:errorlint // it isn't wrapped
		d.t.Skipf("the kernel has no such filter: %v", errno)
	}
	return err
}

func (d *badDisk) install() syscall.Errno {
	const load, equal, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{{Code: load}} // the call's number
	for number := range writing {
		filter = append(filter, unix.SockFilter{Code: equal, Jf: 1, K: uint32(number)}, unix.SockFilter{Code: give, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	filter = append(filter, unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); errno != 0 {
		return errno
	}
	fd, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	d.listener = fd
	return errno
}

// serve answers the kernel until the program has ended.
func (d *badDisk) serve() {
	for {
		var asked struct { // seccomp_notif
			id         uint64
			pid, flags uint32
			nr         int32
			arch       uint32
			ip         uint64
			args       [6]uint64
		}
		_, _, errno := syscall.Syscall(unix.SYS_IOCTL, d.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&asked)))
		if errno == unix.EINTR || errno == unix.ENOENT {
			continue
		}
		if errno != 0 {
			return
		}
		answer := struct { // seccomp_notif_resp
			id    uint64
			value int64
			errno int32
			flags uint32
		}{id: asked.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if call := writing[asked.nr]; d.fails(call.name, asked.pid, asked.args[call.file]) {
			answer.flags, answer.errno = 0, -int32(unix.EIO)
		}
		_, _, _ = syscall.Syscall(unix.SYS_IOCTL, d.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer))) // the caller may have been killed
	}
}

// fails reports whether a call is to fail.
func (d *badDisk) fails(call string, pid uint32, file uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.errors == 0 {
		return false
	}
	path, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(int(pid)), "fd", strconv.FormatUint(file&0xffffffff, 10)))
	below, ok := strings.CutPrefix(path, d.below+"/")
	if err != nil || !ok && path != d.below {
		return false
	}
	if d.skip > 0 {
		d.skip--
		return false
	}
	d.errors--
	d.failed = append(d.failed, call+" "+filepath.Base(below))
	return true
}
