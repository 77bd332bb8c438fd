package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

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

// value is the payload as a JSON value; the zero Payload is an empty object.
func (p Payload) value() any {
	if p.object == nil {
		return map[string]any{}
	}
	return p.object
}

// With returns a copy in which the field at the dotted path has the value. Objects
// on the way are made where they are missing; a field keeps its place. A path that
// leads through something that isn't an object is an Input fault.
func (p Payload) With(path string, value any) (Payload, error) {
	keys, err := splitPath(path)
	if err != nil {
		return Payload{}, err
	}
	text, err := encode(value)
	if err != nil {
		return Payload{}, err
	}
	raw, err := strictjson.Set(p.JSON(), keys, text)
	if err != nil {
		return Payload{}, fault.New(fault.Input, "the field path leads through a value that isn't an object").
			WithHint("a dotted path goes through objects only")
	}
	return Decode(raw, math.MaxInt64)
}

func splitPath(path string) ([]string, error) {
	keys := strings.Split(path, ".")
	for _, key := range keys {
		if key == "" {
			return nil, fault.New(fault.Input, "the field path %s has an empty part", quote(path)).
				WithHint("write the names of the fields with dots between them, such as options.limit")
		}
	}
	if len(keys) > MaxDepth {
		return nil, fault.New(fault.Input, "the field path has more than %d parts", MaxDepth)
	}
	return keys, nil
}

// Replaced returns a copy of the payload's object with other values in the place of file
// references. Numbers are json.Number.
func (p Payload) Replaced(refs []FileRef, with func(FileRef) any) map[string]any {
	values := p.Values()
	for _, ref := range refs {
		replace(values, ref.path, with(ref))
	}
	return values
}

// replace sets what stands at a path that is there.
func replace(document any, path []string, to any) {
	last := len(path) - 1
	container, _ := strictjson.Lookup(document, path[:last])
	switch container := container.(type) {
	case map[string]any:
		container[path[last]] = to
	case []any:
		if i, err := strconv.Atoi(path[last]); err == nil {
			container[i] = to
		}
	}
}

// WithNames returns a copy of the payload with the clean name in the place of each text that
// a reference stands for.
func (p Payload) WithNames(refs []FileRef) (Payload, error) {
	object, _ := clone(p.value()).(map[string]any)
	for _, ref := range refs {
		replace(object, ref.path, ref.Name)
	}
	return NewPayload(object)
}
