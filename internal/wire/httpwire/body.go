package httpwire

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/agent-on-demand/aod/api/fault"
)

// SmallBody is the limit in bytes of bodies that hold no payload, and the room for what
// stands around a payload in others.
const SmallBody = 16 << 10

// Body reads what a client sends, up to a limit. Its errors are faults: TooLarge beyond
// the limit, BadRequest for a body that breaks off or comes too slowly, Unavailable where a
// Gate has no room for it. The first one is kept, because a reader in between may bury it;
// see Or. It is not safe for concurrent use.
type Body struct {
	source      io.Reader
	limit, left int64
	err         error
}

// NewBody returns a reader of at most limit bytes of source. The source may be an
// http.MaxBytesReader of the same limit, which also closes the connection.
func NewBody(source io.Reader, limit int64) *Body {
	return &Body{source: source, limit: limit, left: limit}
}

// BodyOf returns a reader of at most limit bytes of a request's body. A body that is declared
// to be longer is refused before any of it is read.
func BodyOf(r *http.Request, limit int64) *Body {
	b := NewBody(r.Body, limit)
	if r.ContentLength > limit {
		b.err = b.tooLarge()
	}
	return b
}

func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.source.Read(p)
	if int64(n) > b.left {
		n = int(b.left)
		b.err = b.tooLarge()
		return n, b.err
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = b.fault(err)
		err = b.err
	}
	return n, err
}

func (b *Body) fault(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return b.tooLarge()
	case fault.Is(err, fault.Unavailable): // there is no memory for it
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.Wrap(fault.BadRequest, err, "the request's body came too slowly")
	}
	return fault.Wrap(fault.BadRequest, err, "the request's body broke off")
}

func (b *Body) tooLarge() error {
	return fault.New(fault.TooLarge, "the request's body has more than %d bytes", b.limit).
		WithHint("send less in one request, or raise the server's limits")
}

// Or returns the error of the body itself, if it has one, and else err. It is nil
// where err is nil.
func (b *Body) Or(err error) error {
	if err != nil && b.err != nil {
		return b.err
	}
	return err
}
