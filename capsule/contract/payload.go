package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Payload is one JSON object: the input of a run, its result, or the arguments of
// a handoff. It never changes. The zero Payload is an empty object.
type Payload struct {
	raw    []byte
	object map[string]any
}

// Decode reads a payload of at most maxBytes (0 is DefaultMaxBytes). It takes
// exactly one JSON object in UTF-8, no deeper than MaxDepth, without duplicate
// names and without numbers that a double can't hold. The error is a *fault.Error:
// TooLarge, or Input with a line and a column. It never shows the payload.
func Decode(raw []byte, maxBytes int64) (Payload, error) {
	if maxBytes == 0 {
		maxBytes = DefaultMaxBytes
	}
	if size := int64(len(raw)); size > maxBytes {
		return Payload{}, fault.New(fault.TooLarge, "the payload has %d bytes, the limit is %d", size, maxBytes).
			WithHint("put large data in a file and declare the field with format file_path; see docs/capsules.md")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return Payload{}, fault.New(fault.Input, "the payload is empty").WithHint("an empty object is written {}")
	}
	v, err := strictjson.Decode(raw)
	if err != nil {
		return Payload{}, notJSON(err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return Payload{}, fault.New(fault.Input, "the payload is %s, expected an object", article(kindOf(v).String())).
			WithHint(`wrap it in an object, such as {"value": …}`)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return Payload{}, fault.Wrap(fault.Internal, err, "the payload could not be compacted")
	}
	return Payload{raw: compact.Bytes(), object: object}, nil
}

func notJSON(err error) *fault.Error {
	var bad *strictjson.Error
	if !errors.As(err, &bad) {
		return fault.Wrap(fault.Internal, err, "the payload could not be read")
	}
	f := fault.New(fault.Input, "the payload is not valid JSON: %s", bad.Error())
	f.Hint, f.Foreign = bad.Hint, []string{string(bad.Foreign())}
	if bad.Pointer != "" {
		f.Findings = []fault.Finding{{Pointer: bad.Pointer, Message: bad.Message(), Foreign: string(bad.Foreign())}}
	}
	return f
}

// NewPayload makes a payload of Go values as encoding/json does, names sorted.
// A value that JSON can't hold, or that Decode would refuse, is an Input fault.
func NewPayload(object map[string]any) (Payload, error) {
	if object == nil {
		return Payload{}, nil
	}
	raw, err := encode(object)
	if err != nil {
		return Payload{}, err
	}
	return Decode(raw, math.MaxInt64)
}

func encode(v any) ([]byte, error) {
	text, err := strictjson.Encode(v)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the value can't be written as JSON")
	}
	return text, nil
}

// JSON returns the payload as compact JSON, names and numbers as they were given.
func (p Payload) JSON() json.RawMessage {
	if p.raw == nil {
		return json.RawMessage("{}")
	}
	return bytes.Clone(p.raw)
}

// MarshalJSON lets a payload stand inside a record.
func (p Payload) MarshalJSON() ([]byte, error) { return p.JSON(), nil }

// UnmarshalJSON reads what MarshalJSON wrote. It knows no limit but that of the
// record around it.
func (p *Payload) UnmarshalJSON(raw []byte) error {
	decoded, err := Decode(raw, math.MaxInt64)
	if err == nil {
		*p = decoded
	}
	return err
}

// IsZero reports whether the payload was never set.
func (p Payload) IsZero() bool { return p.raw == nil }

// Get returns a copy of one top-level field. Numbers are json.Number.
func (p Payload) Get(key string) (any, bool) {
	v, ok := p.object[key]
	return clone(v), ok
}

// Values returns a copy of the object. Numbers are json.Number.
func (p Payload) Values() map[string]any {
	values, _ := clone(p.value()).(map[string]any)
	return values
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, e := range v {
			c[k] = clone(e)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = clone(e)
		}
		return c
	}
	return v
}
