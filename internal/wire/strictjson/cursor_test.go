package strictjson

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outline reads all of a value, and writes down what a cursor says on the way.
func outline(c *Cursor) string {
	var parts []string
	switch c.Peek() {
	case '{':
		for name := range c.Members() {
			parts = append(parts, name+":"+outline(c))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case '[':
		for range c.Elements() {
			parts = append(parts, outline(c))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return string(c.Value())
}

func TestACursorReadsAValueOnce(t *testing.T) {
	c := NewCursor([]byte(` { "a\u002f" : [ 1 , { } , [ ] , [ "x" , {"b":null} ] ] , "c" : -1.5e3 } `))
	if diff := cmp.Diff(`{a/:[1 {} [] ["x" {b:null}]] c:-1.5e3}`, outline(c)); diff != "" {
		t.Error(diff)
	}
	if c.Peek() != 0 || c.Value() != nil {
		t.Error("there is more")
	}
}

func TestACursorMaySkip(t *testing.T) {
	c := NewCursor([]byte(`[{"a":[1,2]},7]`))
	var got []string
	for range c.Elements() {
		got = append(got, string(c.Value()))
	}
	if diff := cmp.Diff([]string{`{"a":[1,2]}`, "7"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestACursorEndsAtAMistake(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1)
	for _, text := range []string{"", "[1", "[1,]", `{"a":1,}`, `{"a" 1}`, `{1:2}`, `[01]`, `["x]`, "[1 2]", deep} {
		c := NewCursor([]byte(text))
		outline(c)
		if !c.broken || c.Peek() != 0 || c.Value() != nil {
			t.Errorf("it goes on in %s", text)
		}
	}
}

func TestElementsAreTextsInTheirOrder(t *testing.T) {
	for text, want := range map[string]string{`[ 1 , {"a": 2} ,"x" ]`: `1|{"a": 2}|"x"`, "[]": "", "{}": "", "7": "", "[1,2": "1|2"} {
		var got []string
		for value := range Elements([]byte(text)) {
			got = append(got, string(value))
		}
		if diff := cmp.Diff(want, strings.Join(got, "|")); diff != "" {
			t.Error(text, diff)
		}
	}
}

func TestTextOfAString(t *testing.T) {
	for text, want := range map[string]string{`"a"`: "a", "\t\"a\\n\\u00e9\"": "a\né", `"\ud800"`: "\ufffd", `"a`: "", `"\x"`: "", "1": "", "null": "", "": ""} {
		if got := Text([]byte(text)); got != want {
			t.Errorf("%s says %q", text, got)
		}
	}
}
