package agenthttp

import (
	"bytes"
	"encoding/json"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
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
	if _, err := document.Read(o); err != nil {
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
	if _, err := document.Read(raw); err != nil {
		return err
	}
	*o = bytes.Clone(raw)
	return nil
}
