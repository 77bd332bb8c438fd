package httpapi

import (
	"errors"
	"io"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func bodyOf(c echo.Context, limit int64) *httpwire.Body {
	return httpwire.BodyOf(c.Request(), limit)
}

// streamed is a body that goes into files as it comes.
func streamed(c echo.Context, body *httpwire.Body) io.Reader {
	return httpwire.Streamed(c.Request().Context(), body)
}

// sized refuses a body that is declared to be longer than any that is taken, also where none
// is read.
func (a *API) sized(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().ContentLength > a.opts.UploadBytes {
			_, err := bodyOf(c, a.opts.UploadBytes).Read(nil)
			return err
		}
		return next(c)
	}
}

// readFields reads the body, one JSON object of at most limit bytes. The error is of
// kind TooLarge, Input or BadRequest.
func readFields(c echo.Context, limit int64) (httpwire.Fields, error) {
	if err := httpwire.RequireJSON(c.Request()); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(bodyOf(c, limit))
	if err != nil {
		return nil, err
	}
	return decodeFields(raw, limit)
}

// member is a member of a body's object, and where its value goes.
type member struct {
	name string
	into any
}

// readObject reads the body, one JSON object of at most limit bytes that has no other members.
func readObject(c echo.Context, limit int64, members ...member) error {
	f, err := readFields(c, limit)
	if err != nil {
		return httpwire.AsKind(fault.BadRequest, err)
	}
	return take(f, members...)
}

// take reads the members of an object that has no others.
func take(f httpwire.Fields, members ...member) error {
	var names []string
	var wrong []error
	for _, m := range members {
		names, wrong = append(names, m.name), append(wrong, httpwire.Take(f, m.name, m.into))
	}
	return errors.Join(f.Only(names...), errors.Join(wrong...))
}

func decodeFields(raw []byte, limit int64) (httpwire.Fields, error) {
	object, err := contract.Decode(raw, limit)
	if err != nil {
		return nil, err
	}
	return httpwire.FieldsOf(object.JSON())
}
