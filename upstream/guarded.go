package upstream

import (
	"bytes"
	"errors"
	"io"
)

// errQuotesKey says that an answer holds the key that it was asked with.
var errQuotesKey = errors.New("the answer holds the key")

// guarded reads a body up to where it holds the key. What may be a beginning of the key is held
// back until it is known not to be one, so that nothing of the key comes out, and nothing else
// waits.
type guarded struct {
	from io.Reader
	key  []byte
	held []byte // read and not given
	end  error
	buf  []byte
}

// leastKey is how long a key has to be, in bytes, for its occurrence to be no accident.
const leastKey = 8

// newGuarded returns a reader of a body; without a key, the body itself.
func newGuarded(from io.Reader, key string) io.Reader {
	if len(key) < leastKey {
		return from
	}
	return &guarded{from: from, key: []byte(key), buf: make([]byte, 32<<10)}
}

func (g *guarded) Read(p []byte) (int, error) {
	for {
		free := len(g.held)
		if g.end == nil {
			free -= g.partial()
		}
		if free > 0 {
			n := copy(p, g.held[:free])
			g.held = g.held[n:]
			return n, nil
		}
		if g.end != nil {
			return 0, g.end
		}
		n, err := g.from.Read(g.buf)
		g.held, g.end = append(bytes.Clone(g.held), g.buf[:n]...), err
		if at := bytes.Index(g.held, g.key); at >= 0 {
			g.held, g.end = g.held[:at], errQuotesKey
		}
	}
}

// partial returns how many of the last bytes are the longest beginning of the key.
func (g *guarded) partial() int {
	for n := min(len(g.held), len(g.key)-1); n > 0; n-- {
		if bytes.HasSuffix(g.held, g.key[:n]) {
			return n
		}
	}
	return 0
}
