package egress

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeBytes is what the pipe between two sockets may hold, if the kernel lets it.
const pipeBytes = 1 << 20

// splice carries bytes from one socket to another until from ends (io.EOF) or a side fails. The
// kernel passes on the memory that they lie in and copies nothing. Where it can't, or one is no
// socket of the kernel's, the error is errors.ErrUnsupported, and nothing was read.
func splice(to, from any, moved func(n int)) error {
	out, err := rawOf(to)
	if err != nil {
		return err
	}
	in, err := rawOf(from)
	if err != nil {
		return err
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		return errors.ErrUnsupported
	}
	defer func() { _, _ = unix.Close(ends[0]), unix.Close(ends[1]) }()   // what is in it has no reader any more
	_, _ = unix.FcntlInt(uintptr(ends[1]), unix.F_SETPIPE_SZ, pipeBytes) // a smaller one does, too
	for {
		n, err := spliceOnce(in.Read, func(fd int) (int64, error) { return spliced(fd, ends[1], pipeBytes) })
		switch {
		case errors.Is(err, unix.EINVAL):
			return errors.ErrUnsupported
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		}
		for n > 0 {
			sent, err := spliceOnce(out.Write, func(fd int) (int64, error) { return spliced(ends[0], fd, n) })
			if err != nil {
				return err
			}
			n -= sent
			moved(sent)
		}
	}
}

func spliced(from, to, most int) (int64, error) {
	return unix.Splice(from, nil, to, nil, most, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
}

// spliceOnce waits until a socket is ready, and moves what can be moved then.
func spliceOnce(when func(func(fd uintptr) bool) error, move func(fd int) (int64, error)) (int, error) {
	var n int64
	var failed error
	err := when(func(fd uintptr) bool {
		for {
			if n, failed = move(int(fd)); !errors.Is(failed, unix.EINTR) {
				return !errors.Is(failed, unix.EAGAIN)
			}
		}
	})
	return int(n), errors.Join(err, failed)
}

func rawOf(conn any) (syscall.RawConn, error) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return socket.SyscallConn()
}
