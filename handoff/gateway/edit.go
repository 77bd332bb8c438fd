package gateway

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// segments are a body in parts, most of which lie in the one that came: a body of 32 MiB
// isn't copied to change a word of it.
type segments [][]byte

// edit returns the body with other values of some fields. Fields that aren't there come
// first; everything else stays byte for byte.
func (q *request) edit(set map[string][]byte) segments {
	fields := slices.DeleteFunc(slices.Clone(q.fields), func(f field) bool { return set[f.name] == nil })
	slices.SortFunc(fields, func(a, b field) int { return cmp.Compare(a.start, b.start) })
	at := bytes.IndexByte(q.body, '{') + 1
	parts := segments{q.body[:at], q.added(set)}
	for _, f := range fields {
		parts = append(parts, q.body[at:f.start], set[f.name])
		at = f.end
	}
	return append(parts, q.body[at:])
}

// added writes the fields that the body doesn't have.
func (q *request) added(set map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if q.field(name) != nil {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		key, _ := strictjson.Encode(name) // a text can be written
		b.Write(key)
		b.WriteByte(':')
		b.Write(set[name])
	}
	if b.Len() > 0 { // there is a model behind it, at least
		b.WriteByte(',')
	}
	return b.Bytes()
}

func (s segments) size() (n int64) {
	for _, part := range s {
		n += int64(len(part))
	}
	return n
}

func (s segments) reader() io.ReadCloser {
	readers := make([]io.Reader, len(s))
	for i, part := range s {
		readers[i] = bytes.NewReader(part)
	}
	return io.NopCloser(io.MultiReader(readers...))
}
