//go:build linux

package pid1

import (
	"runtime"
	"syscall"
	"time"
)

const (
	maxPairs   = 64
	maxBacklog = 512 // connections that wait for a place

	arrivalSlot = maxPairs // in events, what isn't a pair but a listener

	// connectPatience is for an orchestrator that restarts: it comes back at the same
	// path, and until then the socket is missing or refuses.
	connectPatience = 2 * time.Second
	retryPause      = 20 * time.Millisecond
)

// relay takes connections at apiAddresses and joins each to one of its own to apiSocket.
//
// It is one loop over one epoll descriptor, not a goroutine a connection: nothing is
// collected here (see threads.go), so that each connection of a program that makes
// millions would stay in memory; and every read that blocked would be a thread more.
// The loop takes one thread and allocates nothing.
type relay struct {
	epoll     int
	listeners []int
	arrivals  bool // connections may be waiting to be accepted
	pairs     [maxPairs]pair
	events    [32]syscall.EpollEvent
}

// newRelay listens, so that what the program sends in its first moment waits for serve.
// Without an address to listen at it returns nil: a sandbox may have no loopback, and
// most programs never ask for it.
func newRelay() *relay {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	r := &relay{epoll: epoll, listeners: make([]int, 0, len(apiAddresses))}
	for _, address := range apiAddresses {
		if fd := listen(address); fd >= 0 && r.watch(fd, arrivalSlot) {
			r.listeners = append(r.listeners, fd)
		}
	}
	if len(r.listeners) == 0 {
		_ = syscall.Close(epoll)
		return nil
	}
	return r
}

// serve never returns; it ends with the process.
func (r *relay) serve() {
	for {
		r.await()
		for i := range r.pairs {
			r.turn(i)
		}
		r.accept()
	}
}

// await marks what can go on. It blocks unless a pair has been left in the middle.
func (r *relay) await() {
	n, err := syscall.EpollWait(r.epoll, r.events[:], r.patience())
	if err != nil { // interrupted
		return
	}
	for _, event := range r.events[:n] {
		if event.Fd == arrivalSlot {
			r.arrivals = true
		} else {
			r.pairs[event.Fd].ready = true
		}
	}
}

// patience returns how long there is nothing to do without an event, in milliseconds;
// -1 is for ever.
func (r *relay) patience() int {
	patience := -1
	for i := range r.pairs {
		p := &r.pairs[i]
		if p.state != free && p.ready {
			return 0
		}
		if p.state == connecting || p.state == free && r.arrivals {
			patience = int(retryPause / time.Millisecond)
		}
	}
	return patience
}

// turn takes a pair as far as it goes now.
func (r *relay) turn(slot int) {
	p := &r.pairs[slot]
	if p.state == connecting && p.connect() {
		watched := r.watch(p.client, slot) && r.watch(p.server, slot)
		if !watched {
			p.close()
		}
	}
	if p.state == joined && p.ready {
		p.pump()
		runtime.Gosched() // with one processor, the end of the program waits for us otherwise
	}
}

// accept fills the free places. Whoever finds none waits in the backlog.
func (r *relay) accept() {
	for i := range r.pairs {
		if !r.arrivals {
			return
		}
		if r.pairs[i].state != free {
			continue
		}
		client := r.next()
		if client < 0 {
			return
		}
		r.pairs[i].open(client)
	}
}

// next returns a connection that was waiting, or -1. One that can't be accepted now,
// for lack of descriptors, is tried again later.
func (r *relay) next() int {
	more := false
	for _, listener := range r.listeners {
		fd, errno := acceptFrom(listener)
		if errno == 0 {
			return fd
		}
		more = more || errno != syscall.EAGAIN
	}
	r.arrivals = more
	return -1
}

// watch asks for one event whenever the descriptor becomes readable or writable, and
// for no second one while it stays so: each side of a pair is pumped until it blocks.
func (r *relay) watch(fd, slot int) bool {
	const edge = 1 << 31 // syscall.EPOLLET is negative
	event := syscall.EpollEvent{
		Events: syscall.EPOLLIN | syscall.EPOLLOUT | syscall.EPOLLRDHUP | edge,
		Fd:     int32(slot), //nolint:gosec // at most maxPairs
	}
	return syscall.EpollCtl(r.epoll, syscall.EPOLL_CTL_ADD, fd, &event) == nil
}
