package upstream

import (
	"bytes"
	"errors"
	"io"

	"github.com/agent-on-demand/aod/internal/secrets"
)

// errQuotesKey says that an answer holds the key that it was asked with.
var errQuotesKey = errors.New("the answer holds the key")

// guarded reads a body up to where it holds the key. What may be a beginning of the key is held
// back until it is known not to be one, so that nothing of the key comes out, and nothing else
// waits.
type guarded struct {
	from   io.Reader
	finder *secrets.Finder
	given  int64
	free   int64  // of the bytes that were read
	held   []byte // read and not given
	end    error
	buf    []byte
}

// newGuarded returns a reader of a body; without a key that can be found, the body itself.
func newGuarded(from io.Reader, key secrets.Secret) io.Reader {
	if !key.CanBeFound() {
		return from
	}
	return &guarded{from: from, finder: secrets.NewFinder(key), buf: make([]byte, 32<<10)}
}

func (g *guarded) Read(p []byte) (int, error) {
	for {
		if g.free > g.given {
			n := copy(p, g.held[:g.free-g.given])
			g.held, g.given = g.held[n:], g.given+int64(n)
			return n, nil
		}
		if g.end != nil {
			return 0, g.end
		}
		n, err := g.from.Read(g.buf)
		g.held, g.end = append(bytes.Clone(g.held), g.buf[:n]...), err
		var found bool
		if g.free, found = g.finder.Next(g.buf[:n], err != nil); found {
			g.end = errQuotesKey
		}
	}
}
