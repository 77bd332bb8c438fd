package tunnel

import (
	"encoding/binary"
	"errors"
	"io"
	"time"
)

// A frame of yamux (its spec.md, "Framing"): version, type, two bytes of flags, four of the
// stream and four of length, big endian. That many bytes follow where the type is data.
const (
	headerSize = 12
	typeAt     = 1
	lengthAt   = 8
	typeData   = 0
	typePing   = 2
)

var errPing = errors.New("tunnel: the far end sends what an honest one never does")

// guard closes the connection when the far end does something that yamux's windows don't
// bound: it sends half a frame, or it pings. Each ping would cost a goroutine here.
type guard struct {
	io.ReadWriteCloser
	// limit is how long the rest of a frame may take. Until the rest is there, nothing wakes
	// a reader of its stream, not even its deadline.
	limit  time.Duration
	header [headerSize]byte
	have   int         // how many bytes of header were read
	rest   uint32      // how many bytes of the frame's data are still to come
	late   *time.Timer // runs while a frame is under way
}

func (g *guard) Read(p []byte) (int, error) {
	n, err := g.ReadWriteCloser.Read(p)
	if pinged := g.look(p[:n]); pinged {
		return 0, errPing
	}
	g.watch(err == nil && (g.have > 0 || g.rest > 0))
	return n, err
}

// watch closes the connection when a frame under way takes too long.
func (g *guard) watch(underWay bool) {
	switch {
	case !underWay && g.late != nil:
		g.late.Stop()
		g.late = nil
	case underWay && g.late == nil:
		g.late = time.AfterFunc(g.limit, func() { _ = g.Close() }) // its read then ends
	}
}

// look goes through the bytes that were read, frame by frame, and stops at a ping.
func (g *guard) look(p []byte) (pinged bool) {
	for len(p) > 0 {
		if g.rest > 0 {
			n := min(uint64(g.rest), uint64(len(p)))
			g.rest -= uint32(n) //nolint:gosec // not more than rest
			p = p[n:]
			continue
		}
		n := copy(g.header[g.have:], p)
		g.have, p = g.have+n, p[n:]
		if g.have < headerSize {
			return false
		}
		switch g.have = 0; g.header[typeAt] {
		case typePing:
			return true
		case typeData:
			g.rest = binary.BigEndian.Uint32(g.header[lengthAt:])
		}
	}
	return false
}
