package quota

import (
	"encoding/binary"
	"sync"

	"golang.org/x/sys/unix"
)

// The kernel's messages of quotas: <linux/quota.h>. Family and group have a number that never changes.
const (
	ofType, ofProject, ofWarning, ofMajor, ofMinor = 1, 2, 3, 4, 5

	kindMask = 0x3fff // of the numbers of attributes, the upper bits say how they are written

	filesRefused, bytesRefused = 1, 4 // QUOTA_NL_IHARDWARN, QUOTA_NL_BHARDWARN
)

// refusals has the writes that the kernel refused. A message of one is there when the write has failed, so that nothing
// needs to wait for it. Where messages get lost, or don't come as in a network namespace of its own, a project is
// known as full for as long as it is.
type refusals struct {
	mu           sync.Mutex
	opened       bool
	socket       int // -1: there is none
	bytes, files map[place]bool
}

var warnings refusals

// place is a project of some file system.
type place struct {
	device uint64
	id     uint32
}

func placeOf(p Project) place {
	var stat unix.Stat_t
	_ = unix.Stat(p.dir, &stat) // one that is gone has no messages
	return place{stat.Dev, p.id}
}

func (r *refusals) of(p Project) (bytes, files bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read()
	at := placeOf(p)
	return r.bytes[at], r.files[at]
}

func (r *refusals) forget(p Project) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read()
	at := placeOf(p)
	delete(r.bytes, at)
	delete(r.files, at)
}

// read reads the messages that are there. The caller holds the lock.
func (r *refusals) read() {
	if !r.opened {
		r.opened, r.bytes, r.files = true, map[place]bool{}, map[place]bool{}
		r.socket = listen()
	}
	buffer := make([]byte, 4096)
	for r.socket >= 0 {
		n, from, err := unix.Recvfrom(r.socket, buffer, unix.MSG_DONTWAIT)
		if err == unix.ENOBUFS || err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		if sender, ok := from.(*unix.SockaddrNetlink); ok && sender.Pid == 0 { // the kernel
			r.note(buffer[:n])
		}
	}
}

// listen returns a socket with the kernel's messages; -1: they can't be had.
func listen() int {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		return -1
	}
	if err := unix.Bind(socket,
		&unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.GENL_ID_VFS_DQUOT - 1)}); err != nil {
		_ = unix.Close(socket) // nothing came
		return -1
	}
	return socket
}

// note takes a message: two headers, then attributes with their length and kind.
func (r *refusals) note(message []byte) {
	const headers = unix.SizeofNlMsghdr + unix.GENL_HDRLEN
	if len(message) < headers || binary.NativeEndian.Uint16(message[4:]) != unix.GENL_ID_VFS_DQUOT {
		return
	}
	var values [ofMinor + 1]uint64
	for rest := message[headers:]; len(rest) >= unix.NLA_HDRLEN; {
		length, kind := int(binary.NativeEndian.Uint16(rest)), binary.NativeEndian.Uint16(rest[2:])&kindMask
		if length < unix.NLA_HDRLEN || length > len(rest) {
			return
		}
		if int(kind) < len(values) {
			values[kind] = number(rest[unix.NLA_HDRLEN:length])
		}
		rest = rest[min((length+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1), len(rest)):]
	}
	if values[ofType] != projects || values[ofProject] < first {
		return
	}
	//nolint:gosec // the kernel sends 32 bits
	at := place{unix.Mkdev(uint32(values[ofMajor]), uint32(values[ofMinor])), uint32(values[ofProject])}
	switch values[ofWarning] {
	case bytesRefused:
		r.bytes[at] = true
	case filesRefused:
		r.files[at] = true
	}
}

func number(raw []byte) uint64 {
	switch len(raw) {
	case 4:
		return uint64(binary.NativeEndian.Uint32(raw))
	case 8:
		return binary.NativeEndian.Uint64(raw)
	}
	return 0
}
