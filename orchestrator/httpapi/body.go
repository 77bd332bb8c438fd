package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
)

// smallBody is the limit of bodies that hold no payload.
const smallBody = 16 << 10

// body is what a client sends: bounded, and with errors that are faults. The first one
// is kept, since a reader in between may bury it.
type body struct {
	source      io.Reader
	limit, left int64
	err         error
}

func bodyOf(c echo.Context, limit int64) *body {
	return &body{source: c.Request().Body, limit: limit, left: limit}
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.source.Read(p)
	if int64(n) > b.left {
		n = int(b.left)
		b.err = fault.New(fault.TooLarge, "the request's body has more than %d bytes", b.limit).
			WithHint("send less in one request, or raise the server's limits")
		return n, b.err
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = unreadable(err)
		err = b.err
	}
	return n, err
}

func unreadable(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.Wrap(fault.BadRequest, err, "the request's body came too slowly")
	}
	return fault.Wrap(fault.BadRequest, err, "the request's body broke off")
}

// or returns what went wrong with the body itself, or else err.
func (b *body) or(err error) error {
	if err != nil && b.err != nil {
		return b.err
	}
	return err
}

// fields are the members of a JSON object by their exact names: encoding/json takes
// "Unit" for "unit" in a struct.
type fields map[string]json.RawMessage

// readFields reads the body, one JSON object of at most limit bytes. The error is of
// kind TooLarge or Input.
func readFields(c echo.Context, limit int64) (fields, error) {
	if !isJSON(c.Request()) {
		return nil, fault.New(fault.BadRequest, "the body's Content-Type is not application/json").
			WithHint("send the header Content-Type: application/json")
	}
	raw, err := io.ReadAll(bodyOf(c, limit))
	if err != nil {
		return nil, err
	}
	return decodeFields(raw, limit)
}

func decodeFields(raw []byte, limit int64) (fields, error) {
	object, err := contract.Decode(raw, limit)
	if err != nil {
		return nil, err
	}
	var f fields
	if err := json.Unmarshal(object.JSON(), &f); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the body could not be read again")
	}
	return f, nil
}

func isJSON(r *http.Request) bool { return mediaType(r) == echo.MIMEApplicationJSON }

func mediaType(r *http.Request) string {
	media, _, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if err != nil {
		return ""
	}
	return media
}

// only refuses fields of other names.
func (f fields) only(names ...string) error {
	for name := range f {
		if !slices.Contains(names, name) {
			return fault.New(fault.BadRequest, "the body has a field that is not known").
				WithHint("its fields are %q", names)
		}
	}
	return nil
}

// take reads a field into a Go value; one that is missing or null leaves it as it is.
func take[T any](f fields, name string, into *T) error {
	raw, ok := f[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Wrap(fault.BadRequest, err, "the field %q has a value of the wrong type", name)
	}
	return nil
}

// as makes one kind of the two that say that a client sent something wrong: which of
// them it is, each wire has its own word for. Other errors stay as they are.
func as(kind fault.Kind, err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.Input && e.Kind != fault.BadRequest {
		return err
	}
	turned := *e
	turned.Kind = kind
	return &turned
}
