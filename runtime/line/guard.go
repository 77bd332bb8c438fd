package line

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

// frameTime is how long the rest of a frame may take. Until it is there, who reads from its
// stream can't be woken, whatever deadline it has.
var frameTime = 10 * time.Second

var errPing = errors.New("line: the far end sends what an honest one never does")

// guard ends a connection whose far end does what no window bounds: it leaves a frame half
// sent, or pings, each of which costs a goroutine here.
type guard struct {
	io.ReadWriteCloser
	header [headerSize]byte
	have   int         // bytes of header that were read
	rest   uint32      // bytes of data that are still to come
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

// watch has the connection closed when the frame under way, if one is, takes too long.
func (g *guard) watch(underWay bool) {
	switch {
	case !underWay && g.late != nil:
		g.late.Stop()
		g.late = nil
	case underWay && g.late == nil:
		g.late = time.AfterFunc(frameTime, func() { _ = g.Close() }) // its read then ends
	}
}

// look passes through what was read, frame by frame, and stops at a ping.
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
