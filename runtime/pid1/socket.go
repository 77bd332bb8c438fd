//go:build linux

package pid1

import (
	"syscall"
	"unsafe"
)

// Where a program finds the capsule API by TCP, and where we find it.
var (
	apiAddresses = []syscall.Sockaddr{
		&syscall.SockaddrInet4{Port: apiPort, Addr: [4]byte{127, 0, 0, 1}},
		&syscall.SockaddrInet6{Port: apiPort, Addr: [16]byte{15: 1}},
	}
	apiSocket syscall.Sockaddr = &syscall.SockaddrUnix{Name: "/run/aod/aod.sock"}
)

const apiPort = 7070

const socketFlags = syscall.SOCK_STREAM | syscall.SOCK_NONBLOCK | syscall.SOCK_CLOEXEC

// listen returns a listening socket, or -1.
func listen(address syscall.Sockaddr) int {
	family := syscall.AF_INET
	if _, six := address.(*syscall.SockaddrInet6); six {
		family = syscall.AF_INET6
	}
	fd, err := syscall.Socket(family, socketFlags, 0)
	if err != nil {
		return -1
	}
	// A network namespace may have been another run's before.
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	// What it accepts has that, too: the second part of an answer doesn't wait until the first one is acknowledged.
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	if syscall.Bind(fd, address) != nil || syscall.Listen(fd, maxBacklog) != nil {
		_ = syscall.Close(fd)
		return -1
	}
	return fd
}

// newServerSocket returns a socket that can be connected to apiSocket, or -1.
func newServerSocket() int {
	fd, err := syscall.Socket(syscall.AF_UNIX, socketFlags, 0)
	if err != nil {
		return -1
	}
	return fd
}

// movement is what a move came to.
type movement uint8

const (
	moved   movement = iota
	blocked          // nothing to read, or no room to write
	ended            // the sender has sent everything
	deaf             // the receiver takes nothing any more
	broken           // the sender is gone
)

// chunk is all the memory that data passes through, whatever the number of pairs: what
// the receiver has no room for stays in the sender's socket, since it is only peeked
// at until it has been sent. What goes through the pipes of splice.go is the kernel's.
var chunk [64 << 10]byte

// move takes at most a chunk from one socket to another.
func move(from, to int) movement {
	n, errno := receive(from, chunk[:], syscall.MSG_PEEK)
	switch {
	case errno != 0:
		return stopped(errno, broken)
	case n == 0:
		return ended
	}
	sent, errno := send(to, chunk[:n])
	if errno != 0 {
		return stopped(errno, deaf)
	}
	return drop(from, sent)
}

// drop reads what was sent.
func drop(from, n int) movement {
	for n > 0 {
		got, errno := receive(from, chunk[:n], 0)
		switch {
		case errno == syscall.EINTR:
		case errno != 0 || got == 0: // it was there a moment ago, so it would be sent twice
			return broken
		default:
			n -= got
		}
	}
	return moved
}

// The three below are not package syscall's, which allocate an address each time. They
// never block, so the scheduler needn't know of them.

func receive(fd int, buf []byte, flags int) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(&buf[0])), //nolint:gosec // how it takes a buffer
		uintptr(len(buf)), uintptr(flags), 0, 0)
	return int(n), errno
}

func send(fd int, buf []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(&buf[0])), //nolint:gosec // how it takes a buffer
		uintptr(len(buf)), syscall.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

func acceptFrom(listener int) (int, syscall.Errno) {
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_ACCEPT4, uintptr(listener), 0, 0,
		syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0, 0)
	return int(fd), errno
}
