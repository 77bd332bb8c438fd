//go:build linux && (amd64 || arm64)

package pid1

import "syscall"

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
