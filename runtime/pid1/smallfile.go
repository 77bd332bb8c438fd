//go:build linux

package pid1

import (
	"strings"
	"syscall"
)

// readSmall returns the start of a kernel file, at most len(buf) bytes, without the
// final newline; nil when it can't be read. Such files come in one read.
func readSmall(path string, buf []byte) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd) //nolint:errcheck // nothing was written
	n, err := syscall.Read(fd, buf)
	if err != nil || n <= 0 {
		return nil
	}
	return []byte(strings.TrimRight(string(buf[:n]), "\n"))
}
