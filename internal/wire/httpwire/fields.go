package httpwire

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
)

// Fields are the members of a JSON object by their exact names: encoding/json takes
// "Unit" for "unit" in a struct.
type Fields map[string]json.RawMessage

// FieldsOf returns the members of an object that was read strictly before: it is valid
// JSON and names no member twice. Another document is an Internal fault.
func FieldsOf(object []byte) (Fields, error) {
	var f Fields
	if err := json.Unmarshal(object, &f); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the body could not be read again")
	}
	return f, nil
}

// Only returns a BadRequest fault if there is a field of another name.
func (f Fields) Only(names ...string) error {
	for name := range f {
		if !slices.Contains(names, name) {
			return fault.New(fault.BadRequest, "the body has a field that is not known").
				WithHint("its fields are %q", names)
		}
	}
	return nil
}

// Take reads a field into a Go value. A field that is missing or null leaves the value as
// it is. A value of another type is a BadRequest fault.
func Take(f Fields, name string, into any) error {
	raw, ok := f[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Wrap(fault.BadRequest, err, "the field %q has a value of the wrong type", name)
	}
	return nil
}

// AsKind gives an Input or a BadRequest fault the given kind, and returns every other
// error as it is. Both kinds say that the client sent something wrong; each address has
// its own word for that.
func AsKind(kind fault.Kind, err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.Input && e.Kind != fault.BadRequest {
		return err
	}
	turned := *e
	turned.Kind = kind
	return &turned
}
