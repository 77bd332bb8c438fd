package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

func bodyOf(c echo.Context, limit int64) *httpwire.Body {
	return httpwire.BodyOf(c.Request(), limit)
}

// streamed is a body that goes into files as it comes.
func streamed(c echo.Context, body *httpwire.Body) io.Reader {
	return httpwire.Streamed(c.Request().Context(), body)
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

// readOptional is readObject of a small body that may be missing.
func readOptional(c echo.Context, members ...member) error {
	if c.Request().ContentLength == 0 {
		return nil
	}
	return readObject(c, httpwire.SmallBody, members...)
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

// bodies reads what requests bring, within the bounds of the API. Files go to spools.
type bodies struct {
	spools interface {
		Room(bytes int64) error
		NewSpool() (*spool.Spool, error)
	}
	payload int64 // bytes of an input's JSON, at most
	upload  int64 // bytes of a request as a whole, at most
	logger  *slog.Logger
}

// room is an error where the disk has no room for a request's body.
func (b bodies) room(c echo.Context) error { return b.spools.Room(c.Request().ContentLength) }

// objectBytes bounds a JSON object that has an input in it.
func (b bodies) objectBytes() int64 { return b.payload + httpwire.SmallBody }

// object is readObject for an object that may have an input in it.
func (b bodies) object(c echo.Context, members ...member) error {
	return readObject(c, b.objectBytes(), members...)
}

// submission reads the body in either of its forms. With a session it may be a message.
func (b bodies) submission(c echo.Context, session string) (spool.Submission, error) {
	switch httpwire.MediaType(c.Request().Header) {
	case echo.MIMEApplicationJSON:
		return b.readJSON(c, session)
	case echo.MIMEMultipartForm:
		return b.readForm(c, session)
	}
	return spool.Submission{}, fault.New(fault.BadRequest,
		"the body's Content-Type is neither application/json nor multipart/form-data").
		WithHint("send JSON with the header Content-Type: application/json, or a form if there are files")
}

func (b bodies) readJSON(c echo.Context, session string) (spool.Submission, error) {
	sub := spool.Submission{Session: session}
	var timeout string
	var message *string
	members := []member{
		{"input", &sub.Input},
		{"timeout", &timeout},
		{"metadata", &sub.Metadata},
		{"unattended", &sub.Unattended},
	}
	if session != "" {
		members = append([]member{{"message", &message}}, members...)
	} else {
		members = slices.Concat([]member{{"unit", &sub.Unit}, {"session", &sub.Session}}, members,
			[]member{{"context", &sub.Context}, {"env", &sub.Start.Env}, {"dir", &sub.Start.Dir}})
	}
	err := b.object(c, members...)
	if err == nil {
		sub, err = withMessage(sub, message)
	}
	if err != nil {
		return spool.Submission{}, err
	}
	return completed(sub, timeout)
}

// completed checks the parts that both forms of a submission have.
func completed(sub spool.Submission, timeout string) (spool.Submission, error) {
	if sub.Unit == "" && sub.Session == "" {
		return sub, fault.New(fault.BadRequest, "the request names no unit").
			WithHint("set \"unit\"; `aod units` lists them")
	}
	var err error
	sub.Timeout, err = httpwire.Timeout(timeout)
	return sub, err
}

// withMessage makes the input of a message, which a session's turn may have in its place.
func withMessage(sub spool.Submission, message *string) (spool.Submission, error) {
	if message == nil {
		return sub, nil
	}
	if len(sub.Input) > 0 {
		return sub, fault.New(fault.BadRequest, "the request has a message and an input").
			WithHint("send one of them: a message is the field message of the input")
	}
	raw, err := json.Marshal(map[string]string{"message": *message})
	sub.Input = raw
	return sub, err
}

// release releases files that no run took.
func (b bodies) release(c echo.Context, files *spool.Spool) {
	if err := files.Remove(); err != nil {
		b.logger.WarnContext(c.Request().Context(), "spool not removed", "error", err)
	}
}
