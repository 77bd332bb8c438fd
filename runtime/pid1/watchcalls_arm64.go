//go:build linux

package pid1

import "syscall"

const (
	auditArch  = 0xc00000b7 // AUDIT_ARCH_AARCH64
	sysSeccomp = 277
)

// watchedCalls are the calls that a watched program's kernel tells of, by their numbers.
var watchedCalls = map[int32]watchedCall{
	syscall.SYS_OPENAT: {path: 1, flags: 2}, 437: {path: 1, how: true}, // openat2
	syscall.SYS_TRUNCATE: {path: 0}, syscall.SYS_MKDIRAT: {path: 1}, syscall.SYS_MKNODAT: {path: 1},
	syscall.SYS_UNLINKAT: {path: 1},
	syscall.SYS_RENAMEAT: {path: 3}, 276: {path: 3}, // renameat2
	syscall.SYS_LINKAT: {path: 3}, syscall.SYS_SYMLINKAT: {path: 2},
	syscall.SYS_BIND: {binds: true}, syscall.SYS_LISTEN: {listens: true},
}
