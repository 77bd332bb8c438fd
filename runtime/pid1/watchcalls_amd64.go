//go:build linux

package pid1

import "syscall"

const (
	auditArch  = 0xc000003e // AUDIT_ARCH_X86_64
	sysSeccomp = 317
)

// watchedCalls are the calls that a watched program's kernel tells of, by their numbers.
var watchedCalls = map[int32]watchedCall{
	// openat2
	syscall.SYS_OPEN: {path: 0, flags: 1}, syscall.SYS_OPENAT: {path: 1, flags: 2}, 437: {path: 1, how: true},
	syscall.SYS_CREAT: {path: 0}, syscall.SYS_TRUNCATE: {path: 0},
	syscall.SYS_MKDIR: {path: 0}, syscall.SYS_MKDIRAT: {path: 1}, syscall.SYS_MKNOD: {path: 0},
	syscall.SYS_MKNODAT: {path: 1},
	syscall.SYS_RMDIR:   {path: 0}, syscall.SYS_UNLINK: {path: 0}, syscall.SYS_UNLINKAT: {path: 1},
	syscall.SYS_RENAME: {path: 1}, syscall.SYS_RENAMEAT: {path: 3}, 316: {path: 3}, // renameat2
	syscall.SYS_LINK: {path: 1}, syscall.SYS_LINKAT: {path: 3}, syscall.SYS_SYMLINK: {path: 1},
	syscall.SYS_SYMLINKAT: {path: 2},
	syscall.SYS_BIND:      {binds: true}, syscall.SYS_LISTEN: {listens: true},
}
