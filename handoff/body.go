package handoff

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
)

const (
	smallBody = 16 << 10         // bytes of a body that holds no payload
	bodyTime  = 30 * time.Second // for the whole of a body to come
)

// fields are the members of a JSON object by their exact names: encoding/json takes
// "Target" for "target" in a struct.
type fields map[string]json.RawMessage

// readFields reads the body, one JSON object of at most limit bytes, as its fields.
func readFields(w http.ResponseWriter, r *http.Request, limit int64) (fields, error) {
	object, err := readObject(w, r, limit)
	if err != nil {
		return nil, err
	}
	var f fields
	if err := json.Unmarshal(object.JSON(), &f); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the body could not be read again")
	}
	return f, nil
}

// readObject reads the body, one JSON object of at most limit bytes. The media type has
// to be right, since a browser sends others for any page without asking.
func readObject(w http.ResponseWriter, r *http.Request, limit int64) (contract.Payload, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return contract.Payload{}, fault.New(fault.BadRequest, "the body's Content-Type is not application/json").
			WithHint("send the header Content-Type: application/json")
	}
	raw, err := readBody(w, r, limit)
	if err != nil {
		return contract.Payload{}, err
	}
	return contract.Decode(raw, limit)
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyTime)) // a connection without deadlines is a test's
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	_ = conn.SetReadDeadline(time.Time{}) // the server goes on reading, to see whether the client is there
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refuse(RuleSize, fault.New(fault.TooLarge, "the request's body has more than %d bytes", limit).
			WithHint("put large data in a file and declare the field with format file_path"))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fault.Wrap(fault.BadRequest, err, "the request's body came too slowly")
	case err != nil:
		return nil, fault.Wrap(fault.BadRequest, err, "the request's body broke off")
	}
	return raw, nil
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
// them it is, each address has its own word for. Other errors stay as they are.
func as(kind fault.Kind, err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.Input && e.Kind != fault.BadRequest {
		return err
	}
	turned := *e
	turned.Kind = kind
	return &turned
}
