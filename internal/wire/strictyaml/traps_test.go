package strictyaml

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// traps are values on which readers of YAML 1.1, of YAML 1.2 and of JSON differ, or which a person means as something
// else. A want of type refused is a part of the finding.
type refused string

const (
	notJSON = refused("isn't a number as JSON writes it (put it in quotes")
	beyond  = refused("is beyond what is read exactly, -2^63 to 2^64-1 (put it in quotes)")
	notHeld = refused("is not a number that JSON can hold (write a finite number, or put it in quotes)")
)

var traps = []struct {
	text string
	want any
}{
	{"01234", notJSON},
	{"-01", notJSON},
	{"00", notJSON},
	{"08", notJSON},
	{"0777", notJSON},
	{"01.5", notJSON},
	{"00e1", notJSON},
	{"0o17", notJSON},
	{"-0o17", notJSON},
	{"0x1F", notJSON},
	{"0X1F", notJSON},
	{"-0x1F", notJSON},
	{"0b101", notJSON},
	{"0xFFFFFFFFFFFFFFFFFFFF", notHeld},
	{"1_000", notJSON},
	{"1_", notJSON},
	{"1_000.5", notJSON},
	{"+1", notJSON},
	{"+491701234567", notJSON},
	{".5", notJSON},
	{"-.5", notJSON},
	{"5.", notJSON},
	{"+.5e3", notJSON},
	{"[01, 1_0]", notJSON},
	{"{a: 0b1}", notJSON},
	{"!!int 010", notJSON},
	{`!!int "0x10"`, notJSON},
	{"18446744073709551616", beyond},
	{"-9223372036854775809", beyond},
	{"123456789012345678901234567890", beyond},
	{"!!int 18446744073709551616", beyond},
	{"!!float 18446744073709551616", beyond},
	{"1e400", notHeld},
	{"-1.5e999", notHeld},
	{".inf", notHeld},
	{"-.INF", notHeld},
	{".NaN", notHeld},
	{"0", int64(0)},
	{"-0", int64(0)},
	{"10", int64(10)},
	{"18446744073709551615", uint64(1<<64 - 1)},
	{"-9223372036854775808", int64(-1 << 63)},
	{"1.50", 1.5},
	{"1E5", 100000.0},
	{"12e03", 12000.0},
	{"1e-400", 0.0},
	{"!!float 5", 5.0},
	{`"01234"`, "01234"},
	{"'1_000'", "1_000"},
	{"!!str 0x10", "0x10"},
	{"190:20:30", "190:20:30"},
	{"12:30", "12:30"},
	{"1.2.3", "1.2.3"},
	{"1,5", "1,5"},
	{"1e", "1e"},
	{"0x", "0x"},
	{"0b2", "0b2"},
	{"0o8", "0o8"},
	{"_1", "_1"},
	{"- 1", refused("block sequence entries are not allowed")},
	{"1 # one", int64(1)},
	{"1#one", "1#one"},
	{"yes", "yes"},
	{"NO", "NO"},
	{"on", "on"},
	{"y", "y"},
	{"!!bool yes", refused(`"yes" is not a bool`)},
	{"TRUE", true},
	{"tRUE", "tRUE"},
	{"NULL", nil},
	{"nil", "nil"},
	{"none", "none"},
	{"2026-02-30", "2026-02-30"},
	{"2026-1-2", "2026-1-2"},
	{"!!timestamp 2026-01-02", "2026-01-02"},
	{"<<", refused(`the tag "!!merge" is not supported`)},
	{"=", "="},
	{"a: b", refused("mapping values are not allowed")},
	{"@a", refused("it isn't YAML")},
	{"%a", refused("it isn't YAML")},
	{"`a`", refused("put a text that begins with @, % or ` in quotes")},
	{"*.py", refused("put a text that begins with * or & in quotes")},
	{"*none", refused("put a text that begins with * or & in quotes")},
	{`"C:\Users"`, refused(`write \\, or take single quotes`)},
	{`"\d"`, refused(`write \\, or take single quotes`)},
	{`C:\Users`, `C:\Users`},
	{"a: b: c", refused("put a text that has a colon and a space in it in quotes")},
	{"\xff", refused("save the file as UTF-8")},
	{"\x07", refused(`such as "\u0007"`)},
	{"!!set {a: null}", refused(`the tag "!!set" is not supported (leave it out)`)},
	{"!!omap [a: 1]", refused(`the tag "!!omap" is not supported`)},
	{"!x {a: 1}", refused(`the tag "!x" is not supported`)},
	{"!!python/object:a.b {}", refused("is not supported (leave it out)")},
	{"!!seq {a: 1}", refused("is not supported (leave it out)")},
	{"!!map {a: !!seq [1]}", map[string]any{"a": []any{int64(1)}}},
	{"!!binary aGk=", refused(`the tag "!!binary" is not supported`)},
	{"a\u0085b: 1", refused(`it holds the character U+0085`)},
	{"\"a\u2028b\"", refused(`or write it as "\u2028" in double quotes`)},
	{"1 # a\u2029b: 2", refused(`it holds the character U+2029`)},
	{"\ufeff1", refused(`it holds the character U+FEFF`)},
	{`"\u2028\N\ufeff"`, "\u2028\u0085\ufeff"},
	{"{b, c: }", map[string]any{"b": nil, "c": nil}},
	{"{b:1}", map[string]any{"b:1": nil}},
	{"{? [a] : 1}", refused("a key must be a text")},
	{"{1: a}", refused("a key must be a text (put it in quotes)")},
	{"{~: a}", refused("a key must be a text (put it in quotes)")},
	{"{2026-01-02: a}", refused("a key must be a text (put it in quotes)")},
	{"{yes: a}", map[string]any{"yes": "a"}},
	{`{a: 1, "a": 2}`, refused(`the key "a" stands twice`)},
	{"&x [*x]", refused("nested more than 32 deep")},
	{"60:00", "60:00"},
	{"off", "off"},
	{"", nil},
	{"# a", nil},
}

func TestTraps(t *testing.T) {
	for _, trap := range traps {
		doc, findings := Parse("a.yaml", []byte("first: 1\nv: "+trap.text+"\n"))
		if want, ok := trap.want.(refused); ok {
			if len(findings) == 0 || !strings.Contains(findings[0].String(), string(want)) || findings[0].Line != 2 {
				t.Errorf("%s: %v, want %q in line 2", trap.text, findings, want)
			}
			continue
		}
		if findings != nil {
			t.Errorf("%s: %v", trap.text, findings)
			continue
		}
		if diff := cmp.Diff(trap.want, doc.Value.(map[string]any)["v"]); diff != "" {
			t.Errorf("%s: %s", trap.text, diff)
		}
	}
}

// TestJSONIsTakenByItsOwnRule has texts that the YAML library refuses, or reads as something else.
func TestJSONIsTakenByItsOwnRule(t *testing.T) {
	for text, want := range map[string]any{
		`{"a": "\/", "b": "\ud83d\ude00 \u00e9\b\f"}`:   map[string]any{"a": "/", "b": "😀 é\b\f"},
		"{\n\t\"a\":\t[1,\n\t2]\n}":                     map[string]any{"a": []any{int64(1), int64(2)}},
		`{"a":1,"b":[true,false,null],"c":{"d":{}}}`:    map[string]any{"a": int64(1), "b": []any{true, false, nil}, "c": map[string]any{"d": map[string]any{}}},
		`[-0, 0.0, -1.5E+3, 1e5, 18446744073709551615]`: []any{int64(0), 0.0, -1500.0, 100000.0, uint64(1<<64 - 1)},
		`[18446744073709551616, -9223372036854775809]`:  []any{json.Number("18446744073709551616"), json.Number("-9223372036854775809")},
		`{"<<": "<<", "=": "y", "1": "01", "~": "~"}`:   map[string]any{"<<": "<<", "=": "y", "1": "01", "~": "~"},
		"[\"\u0085\u2028\x7f # a: b\", \"${{ a }}\"]":   []any{"\u0085\u2028\x7f # a: b", "${{ a }}"},
		"\ufeff{\"a\": \"\\/\"}":                        map[string]any{"a": "/"},
		"%YAML 1.2\n---\n{\"a\": \"\\/\"}\n":            map[string]any{"a": "/"},
		"# written by a program\n--- {\"a\": \"\\/\"}":  map[string]any{"a": "/"},
		`"\ud83d\ude00"`:                                "😀",
		"1e5":                                           100000.0,
	} {
		doc, findings := Parse("a.json", []byte(text))
		if findings != nil {
			t.Errorf("%s: %v", text, findings)
			continue
		}
		if diff := cmp.Diff(want, doc.Value); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"{\"a\": 1,\n\"b\": 2,\n\"a\": 3}":                `a.json:3: the key "a" stands twice, first in line 1`,
		"{\n\"a\": \"\\ud83d\"}":                          "a.json:2: there is half a surrogate pair in a string",
		"[1,\n1e400]":                                     "a.json:2: \"1e400\" is not a",
		strings.Repeat("[", 40) + strings.Repeat("]", 40): "a.json:1: it is nested more than 32 deep",
	} {
		if _, findings := Parse("a.json", []byte(text)); len(findings) != 1 || !strings.Contains(findings[0].String(), want) {
			t.Errorf("%s: %v, want %s", text, findings, want)
		}
	}
	doc, _ := Parse("a.json", []byte("%YAML 1.2\n---\n{\n\"a\": [1,\n2]}"))
	if doc.LineAt("/a") != 4 || doc.LineAt("/a/1") != 5 {
		t.Errorf("lines %d and %d", doc.LineAt("/a"), doc.LineAt("/a/1"))
	}
}

func TestTheVersionIsTaken(t *testing.T) {
	for _, text := range []string{
		"%YAML 1.1\n---\na: 1", "%YAML 1.2\n---\na: 1", "%YAML  1.2 # new\r\n---\r\na: 1\r\n", "\ufeff%YAML 1.2\n---\na: 1",
		"# a comment\n\n%YAML 1.3\n--- \na: 1\n...\n", "%TAG !x! tag:x,2000:\n%YAML 1.2\n---\na: 1",
	} {
		doc, findings := Parse("a.yaml", []byte(text))
		if findings != nil || cmp.Diff(map[string]any{"a": int64(1)}, doc.Value) != "" {
			t.Errorf("%q: %v", text, findings)
		}
	}
	for text, line := range map[string]int{
		"%YAML 2.0\n---\na: 1": 1, "%YAML 1.2\na: 1": 1, "%YAML 1.2\n%YAML 1.2\n---\na: 1": 1, "%YAML 1.2\n---\na: 1\n---\nb: 1": 4,
	} {
		if _, findings := Parse("a.yaml", []byte(text)); len(findings) != 1 || findings[0].Line != line {
			t.Errorf("%q: %v, want line %d", text, findings, line)
		}
	}
	doc, findings := Parse("a.yaml", []byte("a: |\n  %YAML 1.2\n"))
	if findings != nil || cmp.Diff(map[string]any{"a": "%YAML 1.2\n"}, doc.Value) != "" {
		t.Errorf("%v %v", findings, doc)
	}
}

func TestWhatIsBrokenIsToldAtItsLine(t *testing.T) {
	for text, line := range map[string]int{
		"a:\n    b: 1\n  c: 2\nd: 3\n":                     3,
		"a: 1\n  b: 2\nc: 3\n":                             2,
		"nodes:\n  a:\n    run: x\n   next: b\n  b: {}\n":  4,
		"a:\n  - 1\n - 2\n":                                3,
		"- a\n- b\n  - c: 1\n - d\n":                       3, // b goes on there
		"a:\n  b: 1\n\n\n c: 2\n":                          5,
		"a:\n  b: x\n   y: z\n":                            3,
		"x: 1\na:\n  b: 1\n    c: 2\n":                     4,
		"x: 1\ny: 2\na: [1, 2\nb: 3\n":                     3,
		"x: 1\ny: {a: 1\n":                                 2,
		"x: 1\ny: \"open\nz: 1\n":                          2,
		"x: 1\ny: \"\\q\"\nz: 1\n":                         2,
		"x: 1\n\ty: 2\n":                                   2,
		"x: 1\ny: &\nz: 1\n":                               2,
		"x: 1\ny: *none\nz: 1\n":                           2,
		"x: 1\n" + strings.Repeat("y: 1\n", 200) + " z: 1": 202,
	} {
		_, findings := Parse("a.yaml", []byte(text))
		if len(findings) == 0 || findings[0].Line != line || !strings.Contains(findings[0].Message, "it isn't YAML") {
			t.Errorf("%q: %v, want line %d", text, findings, line)
		}
	}
}

// FuzzJSON holds what is read of a JSON text against the reader of JSON.
func FuzzJSON(f *testing.F) {
	f.Add(`{"a": ["\/\ud83d\ude00", 1e5, -0, 18446744073709551616, 0.1]}`)
	f.Add("[{}, [],\n null, true]")
	fuzzbound.Run(f, func(t *testing.T, text string) {
		want, err := strictjson.Decode([]byte(text))
		if err != nil {
			return
		}
		doc, findings := Parse("a.json", []byte(text))
		if len(findings) > 0 {
			return // its own bounds, of depth and numbers
		}
		if diff := cmp.Diff(floats(want), floats(doc.Value)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	})
}

// floats makes all numbers the same type.
func floats(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = floats(v[key])
		}
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case json.Number, int64, uint64, float64:
		f, _ := json.Number(fmt.Sprint(v)).Float64()
		return f + 0 // -0 is 0
	}
	return value
}
