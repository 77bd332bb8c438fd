package cases

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestDiffJSON(t *testing.T) {
	cases := []struct {
		name      string
		want, got string
		subset    bool
		lines     []string
	}{
		{"the same in another order and writing", `{"a":1,"b":[true,null]}`, ` {"b" : [true , null], "a":1.0}`, false, nil},
		{"another number", `{"rows":3}`, `{"rows":4}`, false, []string{"/rows: want 3, got 4"}},
		{"numbers by value", `[1, 100, 0.5, -0, 12.50, 0]`, `[1e0, 1E+2, 5e-1, 0, 1.25e1, 0e9]`, false, nil},
		{"numbers that differ in the last of many digits", `[12345678901234567890]`, `[12345678901234567891]`, false, []string{"/0: want 12345678901234567890, got 12345678901234567891"}},
		{"a number of a million digits costs nothing", `[1e1000000]`, `[10e999999]`, false, nil},
		{"an exponent beyond all sense", `[1e99999999999999999999]`, `[1e99999999999999999998]`, false, []string{"/0: want 1e99999999999999999999, got 1e99999999999999999998"}},
		{"a number isn't its text", `{"a":1}`, `{"a":"1"}`, false, []string{`/a: want 1, got "1"`}},
		{"false, null and nothing are three things", `{"a":false,"b":null}`, `{"a":null}`, false, []string{"/a: want false, got null", "/b: want null, got nothing"}},
		{"a field too many", `{"a":1}`, `{"a":1,"b":2}`, false, []string{"/b: want nothing, got 2"}},
		{"a field too many of a subset", `{"a":{"x":1}}`, `{"a":{"x":1,"y":2},"b":2}`, true, nil},
		{"lists of a subset have one length", `{"a":[{"x":1}]}`, `{"a":[{"x":1,"y":1},2]}`, true, []string{"/a: want 1 items, got 2"}},
		{"a list for an object", `{"a":{}}`, `{"a":[]}`, false, []string{"/a: want {}, got []"}},
		{"a text for an object", `{"a":"x"}`, `{"a":{}}`, false, []string{`/a: want "x", got {}`}},
		{"at the root", `1`, `2`, false, []string{"(root): want 1, got 2"}},
		{"names as RFC 6901 writes them", `{"a/b~":1}`, `{"a/b~":2}`, false, []string{"/a~1b~0: want 1, got 2"}},
		{"what isn't JSON", `{}`, `{`, false, []string{"the result isn't JSON: unexpected EOF"}},
		{"what has more behind it", `{} x`, `{}`, false, []string{"what is wanted isn't JSON: something follows the value"}},
		{"no escapes for people", `"<a>"`, `"<b>"`, false, []string{`(root): want "<a>", got "<b>"`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := DiffJSON(json.RawMessage(c.want), json.RawMessage(c.got), c.subset)
			if diff := cmp.Diff(c.lines, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiffJSONIsBounded(t *testing.T) {
	var want, got []string
	for i := range 500 {
		want = append(want, fmt.Sprint(i))
		got = append(got, `"`+strings.Repeat("x", 1000)+`"`)
	}
	lines := DiffJSON(json.RawMessage("["+strings.Join(want, ",")+"]"), json.RawMessage("["+strings.Join(got, ",")+"]"), false)
	if len(lines) != maxDiffLines+1 || lines[maxDiffLines] != "and 450 more differences" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
	if len(lines[0]) > 200 {
		t.Errorf("a line of %d bytes", len(lines[0]))
	}
}

func FuzzDiffJSON(f *testing.F) {
	f.Add(`{"a":[1,2.50,{"b":null}]}`, `{"a":[1,2.5,{"b":false}]}`)
	f.Add(`1e5`, `100000`)
	f.Add(`-0.0e0`, `0`)
	fuzzbound.Run(f, func(t *testing.T, a, b string) {
		for _, subset := range []bool{false, true} {
			if lines := DiffJSON(json.RawMessage(a), json.RawMessage(b), subset); len(lines) > maxDiffLines+1 {
				t.Errorf("%d lines", len(lines))
			}
		}
		if !json.Valid([]byte(a)) {
			return
		}
		if lines := DiffJSON(json.RawMessage(a), json.RawMessage(a), false); lines != nil {
			t.Errorf("%s differs from itself: %v", a, lines)
		}
		if (DiffJSON(json.RawMessage(a), json.RawMessage(b), false) == nil) != (DiffJSON(json.RawMessage(b), json.RawMessage(a), false) == nil) {
			t.Errorf("%s and %s: not symmetric", a, b)
		}
	})
}
