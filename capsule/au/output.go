package au

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// MaxOutputBytes is the default limit of a unit's output (specification, section 8.3).
const MaxOutputBytes = 10 << 20

// Limits on the result of Warnings: the number, and the characters of each.
const (
	MaxWarnings     = 100
	MaxWarningRunes = 1000
)

// Output is a unit's output on stdout: one JSON document, an object or an array.
type Output struct {
	raw []byte
}

// JSON returns the document as the unit printed it, without the space around it. The
// caller must not change it.
func (o *Output) JSON() json.RawMessage { return o.raw }

// Warnings returns the texts in the field "warnings" of the document (specification,
// section 7.3), at most MaxWarnings of them, each cut to MaxWarningRunes. They come from
// the unit and may repeat the input: they belong with the result, never into a log, and
// must be escaped for a terminal.
func (o *Output) Warnings() []string {
	dec := json.NewDecoder(bytes.NewReader(o.field("warnings")))
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return nil
	}
	var warnings []string
	for dec.More() && len(warnings) < MaxWarnings {
		var v any
		if err := dec.Decode(&v); err != nil {
			return warnings
		}
		if s, ok := v.(string); ok {
			warnings = append(warnings, fmt.Sprintf("%.*s", MaxWarningRunes, s))
		}
	}
	return warnings
}

// field returns the text of a field of the document, nil if there is none.
func (o *Output) field(name string) []byte {
	for field, value := range strictjson.Members(o.raw) {
		if field == name {
			return value
		}
	}
	return nil
}

// ParseOutput reads a unit's stdout: exactly one JSON object or array in UTF-8, of at most
// limit bytes (0 is MaxOutputBytes), with only white space around it. The specification
// asks for structured JSON (section 3.1), so a bare string, number, true, false or null is
// refused. So is JSON that not all readers read alike.
//
// A mistake of the unit is an *OutputError; any other error comes from the reader. No more
// than limit+1 bytes are read, and no more than a small multiple of that is kept.
func ParseOutput(r io.Reader, limit int64) (*Output, error) {
	if limit <= 0 {
		limit = MaxOutputBytes
	}
	limit = min(limit, math.MaxInt64-1)
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the output: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, misbehaved(OutputTooLarge, int(limit), "it printed more than %d bytes", limit)
	}
	return parseOutput(data)
}

func parseOutput(data []byte) (*Output, error) {
	o := &Output{raw: bytes.Trim(data, space)}
	if len(o.raw) == 0 {
		return nil, misbehaved(OutputEmpty, 0, "it printed nothing")
	}
	err := strictjson.Check(data, strictjson.Rules{Unbounded: true})
	bad := (*strictjson.Error)(nil)
	errors.As(err, &bad)
	switch {
	case bad != nil && (bad.Problem == strictjson.ByteOrderMark || bad.Problem == strictjson.NotUTF8):
		return nil, refused(bad)
	case bad != nil && !json.Valid(data):
		return nil, diagnose(data)
	case !structured(o.raw):
		return nil, misbehaved(OutputNotStructured, 0, "it printed a JSON value that is no object and no array")
	case bad != nil:
		return nil, refused(bad)
	}
	return o, nil
}

// space is JSON's white space.
const space = " \t\r\n"

// structured reports whether a trimmed document is an object or an array.
func structured(doc []byte) bool { return len(doc) > 0 && (doc[0] == '{' || doc[0] == '[') }
