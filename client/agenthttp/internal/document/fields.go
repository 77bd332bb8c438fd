// Package document reads the JSON documents of the agent HTTP contract, and holds the rules
// for them. The client and the checker judge by the same rules.
//
// Read turns text into Fields; Sync and Terminal are the Rules for the answers; ReadRefusal
// and JudgeRefusal are for refusals.
//
// Documents are hostile: no error and no reason quotes one. It must not know HTTP.
package document

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// What can be wrong with a document. None of these errors quotes it.
var (
	errNotUTF8   = errors.New("is not UTF-8")
	errNotJSON   = errors.New("is not JSON")
	errNotObject = errors.New("is not a JSON object")
	ErrTooDeep   = errors.New("is nested too deeply")
)

// Fields are the members of a JSON object by their exact names; encoding/json would accept
// "OK" for "ok" in a struct. A null member counts as missing. Of two members with one name
// the last one counts.
type Fields map[string]json.RawMessage

// Read reads one JSON object in UTF-8, no deeper than strictjson.MaxDepth.
func Read(raw []byte) (Fields, error) {
	if err := Check(raw); err != nil {
		return nil, err
	}
	if trimmed := bytes.TrimSpace(raw); trimmed[0] != '{' {
		return nil, errNotObject
	}
	f := Fields{}
	for name, value := range strictjson.Members(raw) {
		f[name] = value
		if string(value) == "null" {
			delete(f, name)
		}
	}
	return f, nil
}

// Check accepts exactly one JSON value in UTF-8, no deeper than strictjson.MaxDepth.
// Duplicate names are tolerated.
func Check(raw []byte) error {
	err := strictjson.Check(raw, strictjson.Rules{Ambiguous: true, Unbounded: true})
	bad := (*strictjson.Error)(nil)
	if !errors.As(err, &bad) {
		return err
	}
	switch bad.Problem {
	case strictjson.NotUTF8:
		return errNotUTF8
	case strictjson.TooDeep:
		return ErrTooDeep
	}
	return errNotJSON
}

// Has reports whether there is a member.
func (f Fields) Has(name string) bool { return f[name] != nil }

// Text returns a string member; "" for any other type.
func (f Fields) Text(name string) string {
	var s string
	if json.Unmarshal(f[name], &s) != nil {
		return ""
	}
	return s
}

// Object returns an object member; nil for any other type.
func (f Fields) Object(name string) json.RawMessage {
	raw := bytes.TrimSpace(f[name])
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return raw
}

// Is reports whether a member is that boolean.
func (f Fields) Is(name string, want bool) bool {
	var got bool
	return json.Unmarshal(f[name], &got) == nil && got == want
}

// List returns the elements of a member. A member that is no list is a list of one.
func (f Fields) List(name string) []json.RawMessage {
	if !f.Has(name) {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(f[name], &list) != nil {
		return []json.RawMessage{f[name]}
	}
	return list
}
