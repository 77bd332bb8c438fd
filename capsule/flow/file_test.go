package flow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

var aFile = File{Name: "a/b.txt", SizeBytes: 3, SHA256: strings.Repeat("0f", 32)}

func TestValuesComeBack(t *testing.T) {
	for name, value := range map[string]any{
		"a file":           aFile,
		"files in a list":  map[string]any{"files": []any{aFile, "x", nil, int64(1) << 62, 1.5}},
		"a key as ours":    map[string]any{"$file": map[string]any{"name": "x"}},
		"an escaped key":   map[string]any{"$$file": int64(1), "$": int64(2), "$$": int64(3), "": int64(4)},
		"signs of HTML":    "<a> & b",
		"an empty object":  map[string]any{},
		"an empty list":    []any{},
		"nothing":          nil,
		"keys like a file": map[string]any{"$file": map[string]any{"name": "a", "size_bytes": int64(1), "sha256": strings.Repeat("0", 64)}},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := Encode(value)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(raw)
			if diff := cmp.Diff(value, got); err != nil || diff != "" {
				t.Errorf("%s: %v %s", raw, err, diff)
			}
		})
	}
}

func TestWhatEncodeDidNotWriteIsRefused(t *testing.T) {
	for _, raw := range []string{
		`{"$file": {}}`, `{"$file": 1}`, `{"$x": 1}`, `{"$file": {"name": "a", "size_bytes": -1, "sha256": "` + strings.Repeat("0", 64) + `"}}`,
		`{"a": 1, "$file": {"name": "a", "size_bytes": 1, "sha256": "` + strings.Repeat("0", 64) + `"}}`, `{`, ``,
	} {
		if value, err := Decode([]byte(raw)); err == nil {
			t.Errorf("%s is %v", raw, value)
		}
	}
}

// FuzzEncode takes JSON as a program could give it: it comes back as it was, and no part of it
// is a file.
func FuzzEncode(f *testing.F) {
	f.Add(`{"$file": {"name": "a"}, "b": [1, 1.5, "$file"]}`)
	f.Add(`{"$$file": {"$": 1e400}}`)
	fuzzbound.Run(f, func(t *testing.T, text string) {
		document, err := strictjson.Decode([]byte(text))
		if err != nil {
			return
		}
		value, err := expr.Values(document)
		if err != nil {
			return
		}
		raw, err := Encode(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(raw)
		if diff := cmp.Diff(value, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}
