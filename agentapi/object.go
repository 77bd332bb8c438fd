package agentapi

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/agent-on-demand/aod/strictjson"
)

// What can be wrong with a document. None of these errors quotes it.
var (
	errNotUTF8   = errors.New("is not UTF-8")
	errNotJSON   = errors.New("is not JSON")
	errNotObject = errors.New("is not a JSON object")
	errTooDeep   = errors.New("is nested too deeply")
)

// Object is a JSON object as it was sent, numbers and names unchanged. A missing object is
// nil, and JSON's null is read as nil.
type Object json.RawMessage

// IsZero reports whether there is no object.
func (o Object) IsZero() bool {
	trimmed := bytes.TrimSpace(o)
	return len(trimmed) == 0 || string(trimmed) == "null"
}

// MarshalJSON writes the object, {} if there is none: null is never written.
func (o Object) MarshalJSON() ([]byte, error) {
	if o.IsZero() {
		return []byte("{}"), nil
	}
	if _, err := readFields(o); err != nil {
		return nil, err
	}
	return o, nil
}

// UnmarshalJSON keeps a copy of an object, and leaves null as nil.
func (o *Object) UnmarshalJSON(raw []byte) error {
	*o = nil
	if Object(raw).IsZero() {
		return nil
	}
	if _, err := readFields(raw); err != nil {
		return err
	}
	*o = bytes.Clone(raw)
	return nil
}

// fields are the members of a JSON object by their exact names; encoding/json would accept
// "OK" for "ok" in a struct. A null member counts as missing. Of two members with one name
// the last one counts.
type fields map[string]json.RawMessage

// readFields reads one JSON object in UTF-8, no deeper than strictjson.MaxDepth.
func readFields(raw []byte) (fields, error) {
	if err := checkJSON(raw); err != nil {
		return nil, err
	}
	if trimmed := bytes.TrimSpace(raw); trimmed[0] != '{' {
		return nil, errNotObject
	}
	f := fields{}
	for name, value := range strictjson.Members(raw) {
		f[name] = value
		if string(value) == "null" {
			delete(f, name)
		}
	}
	return f, nil
}

// checkJSON accepts exactly one JSON value in UTF-8, no deeper than strictjson.MaxDepth.
// Duplicate names are tolerated.
func checkJSON(raw []byte) error {
	err := strictjson.Check(raw, strictjson.Rules{Ambiguous: true, Unbounded: true})
	bad := (*strictjson.Error)(nil)
	if !errors.As(err, &bad) {
		return err
	}
	switch bad.Problem {
	case strictjson.NotUTF8:
		return errNotUTF8
	case strictjson.TooDeep:
		return errTooDeep
	}
	return errNotJSON
}

func (f fields) has(name string) bool { return f[name] != nil }

// text returns a string member; "" for any other type.
func (f fields) text(name string) string {
	var s string
	if json.Unmarshal(f[name], &s) != nil {
		return ""
	}
	return s
}

// object returns an object member; nil for any other type.
func (f fields) object(name string) Object {
	raw := bytes.TrimSpace(f[name])
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return Object(raw)
}

// isBool reports whether a member is that boolean.
func (f fields) isBool(name string, want bool) bool {
	var got bool
	return json.Unmarshal(f[name], &got) == nil && got == want
}

// list returns the elements of a member. A member that is no list is a list of one.
func (f fields) list(name string) []json.RawMessage {
	if !f.has(name) {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(f[name], &list) != nil {
		return []json.RawMessage{f[name]}
	}
	return list
}
