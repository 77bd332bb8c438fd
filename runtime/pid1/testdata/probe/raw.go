package main

import (
	"syscall"
	"unsafe"
)

func rawWrite(fd int, b []byte) {
	syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
}

func rawSleep(ts *syscall.Timespec) {
	syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(ts)), 0, 0)
}

func rawExit() { syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0) }
