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
