//go:build linux

package pid1

import (
	"syscall"
	"time"
)

// state is how far a pair has come.
type state uint8

const (
	free state = iota
	connecting
	joined
)

// pair is a program's connection and ours to the orchestrator.
type pair struct {
	state          state
	ready          bool // something may move
	client, server int
	up, down       way       // what the client, and the server, sends
	deadline       time.Time // of connecting
}

// open takes a place for the client.
func (p *pair) open(client int) {
	*p = pair{
		state: connecting, ready: true, client: client, server: newServerSocket(), up: way{open: true},
		down: way{open: true},
	}
	p.deadline = time.Now().Add(connectPatience)
}

// connect reports whether the pair is joined now. It gives up at the deadline.
func (p *pair) connect() bool {
	p.ready = false
	switch {
	case p.server >= 0 && syscall.Connect(p.server, apiSocket) == nil:
		p.state, p.ready = joined, true
	case time.Now().After(p.deadline):
		p.close()
	}
	return p.state == joined
}

func (p *pair) close() {
	p.up.closePipe()
	p.down.closePipe()
	_ = syscall.Close(p.client) // nothing is lost that could be told
	if p.server >= 0 {
		_ = syscall.Close(p.server)
	}
	p.state = free
}

// turnChunks is after how many chunks it is another pair's turn.
const turnChunks = 16

// pump moves what can be moved in both directions, and closes the pair when nothing
// will any more. It leaves the pair ready when there is more.
func (p *pair) pump() {
	p.ready = false
	up := p.up.carry(p.client, p.server)
	down := p.down.carry(p.server, p.client)
	switch {
	// A server that doesn't listen may have answered already. A client that doesn't is
	// gone, and the server, waiting for it to take more, might never listen again.
	case up == broken, down == broken, down == deaf, !p.up.open && !p.down.open:
		p.close()
	case up == moved, down == moved:
		p.ready = true
	}
}

// carry moves some chunks while the way is open, and returns how the last went.
func (w *way) carry(from, to int) movement {
	last := blocked
	for n := 0; w.open && n < turnChunks; n++ {
		switch last = w.move(from, to); last {
		case moved:
		case blocked:
			return blocked
		case ended:
			w.open = false
			_ = syscall.Shutdown(to, syscall.SHUT_WR) // the other side may have gone
		case deaf, broken:
			w.open = false
		}
	}
	return last
}

const (
	// spliceAfter is how many chunks go one way before a pipe is made for it: a small answer
	// isn't worth one.
	spliceAfter = 16
	// pipeBytes is what a pipe may hold, if the kernel lets it.
	pipeBytes = 1 << 20

	spliceMove     = 1    // SPLICE_F_MOVE
	spliceNonblock = 2    // SPLICE_F_NONBLOCK
	setPipeSize    = 1031 // F_SETPIPE_SZ
)

// way is one direction of a pair. Where much goes that way, it goes through a pipe: then the
// kernel passes on the memory that it lies in, and copies nothing.
type way struct {
	open    bool // what comes is still forwarded
	chunks  int  // that were copied so far
	piped   bool
	out, in int // the pipe's ends: what is written to in comes out of out
	held    int // bytes in the pipe
}

// move takes some bytes from one socket to another.
func (w *way) move(from, to int) movement {
	if w.piped {
		return w.splice(from, to)
	}
	last := move(from, to)
	if last == moved {
		if w.chunks++; w.chunks == spliceAfter {
			w.makePipe()
		}
	}
	return last
}

// makePipe makes the pipe. Without one, chunks are copied as before.
func (w *way) makePipe() {
	var ends [2]int
	if syscall.Pipe2(ends[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC) != nil {
		return
	}
	w.piped, w.out, w.in = true, ends[0], ends[1]
	_, _, _ = syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(w.in), setPipeSize, pipeBytes) // a smaller one does, too
}

// splice fills the pipe when it is empty, and empties it.
func (w *way) splice(from, to int) movement {
	if w.held == 0 {
		n, errno := splice(from, w.in, pipeBytes)
		switch {
		case errno == syscall.EINVAL: // this kernel can't
			w.closePipe()
			return moved
		case errno != 0:
			return stopped(errno, broken)
		case n == 0:
			return ended
		}
		w.held = n
	}
	n, errno := splice(w.out, to, w.held)
	if errno != 0 {
		return stopped(errno, deaf)
	}
	w.held -= n
	return moved
}

// stopped is what an error means; other where it is none that passes.
func stopped(errno syscall.Errno, other movement) movement {
	switch errno {
	case syscall.EAGAIN:
		return blocked
	case syscall.EINTR:
		return moved
	}
	return other
}

func (w *way) closePipe() {
	if w.piped {
		_, _ = syscall.Close(w.out), syscall.Close(w.in)
		w.piped = false
	}
}

func splice(from, to, most int) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(most),
		spliceMove|spliceNonblock)
	return int(n), errno
}
