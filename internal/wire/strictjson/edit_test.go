package strictjson

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembersAreTextsInTheirOrder(t *testing.T) {
	var got []string
	for name, value := range Members([]byte(` { "z" : 1.0 , "a\u002f" : [ 1 , {"b":2} ],"a":1, "a":null } `)) {
		got = append(got, name+"="+string(value))
	}
	if diff := cmp.Diff([]string{"z=1.0", `a/=[ 1 , {"b":2} ]`, "a=1", "a=null"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMembersOfWhatIsNoObject(t *testing.T) {
	for text, want := range map[string]int{"": 0, "[]": 0, `"x"`: 0, "{}": 0, `{"a":1,`: 1, `{"a":1,"b"`: 1, `{"a":1,"b":}`: 1, `{"a":1 "b":2}`: 1} {
		n := 0
		for range Members([]byte(text)) {
			n++
		}
		if n != want {
			t.Errorf("%s has %d members", text, n)
		}
	}
}

func TestMembersCanBeLeft(t *testing.T) {
	for name := range Members([]byte(`{"a":1,"b":2}`)) {
		if name != "a" {
			t.Error("it went on")
		}
		break
	}
}

func TestSetKeepsAllElse(t *testing.T) {
	const text = `{"z":1.0,"o":{"b":1e1,"a":2},"s":"x"}`
	for _, c := range []struct{ name, path, value, want string }{
		{"a field keeps its place", "z", "3", `{"z":3,"o":{"b":1e1,"a":2},"s":"x"}`},
		{"a new one goes to the end", "<", "3", `{"z":1.0,"o":{"b":1e1,"a":2},"s":"x","<":3}`},
		{"further down", "o/a", "null", `{"z":1.0,"o":{"b":1e1,"a":null},"s":"x"}`},
		{"objects on the way are made", "p/q", "[]", `{"z":1.0,"o":{"b":1e1,"a":2},"s":"x","p":{"q":[]}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Set([]byte(text), strings.Split(c.path, "/"), []byte(c.value))
			if diff := cmp.Diff(c.want, string(got)); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
	for _, path := range []string{"s/x", "z/x/y", "o/a/x"} {
		if _, err := Set([]byte(text), strings.Split(path, "/"), []byte("1")); !errors.Is(err, ErrNotObject) {
			t.Errorf("Set of %s = %v", path, err)
		}
	}
	if got, err := Set([]byte("{}"), []string{"a"}, []byte("1")); string(got) != `{"a":1}` || err != nil {
		t.Errorf("Set in an empty object = %s, %v", got, err)
	}
}

func TestEncodeLeavesTextAsItIs(t *testing.T) {
	got, err := Encode(map[string]any{"b": "<&>", "a": 1})
	if err != nil || string(got) != `{"a":1,"b":"<&>"}` {
		t.Errorf("Encode = %s, %v", got, err)
	}
	if _, err := Encode(func() {}); err == nil {
		t.Error("a function was written")
	}
}

func TestPointers(t *testing.T) {
	if got := Pointer(); got != "" {
		t.Errorf("the whole document is %q", got)
	}
	if got := Pointer("a/b", "", "c~d", "0"); got != "/a~1b//c~0d/0" {
		t.Errorf("Pointer = %s", got)
	}
	if got := Unescape(Escape("~1/~0")); got != "~1/~0" {
		t.Errorf("Unescape = %s", got)
	}
	long := Pointer(strings.Repeat("é", MaxPointerBytes), "x")
	if len(long) > MaxPointerBytes+len("…") || !strings.HasSuffix(long, "é…") {
		t.Errorf("a long one has %d bytes and ends with %q", len(long), long[len(long)-8:])
	}
}

func TestLookup(t *testing.T) {
	document, err := Decode([]byte(`{"a":[{"b/c":null}],"0":1}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"a": true, "a,0": true, "a,0,b/c": true, "a,1": false, "a,00": false, "a,-1": false, "b": false, "a,0,b/c,d": false, "0": true} {
		if _, ok := Lookup(document, strings.Split(path, ",")); ok != want {
			t.Errorf("Lookup of %s: %v", path, ok)
		}
	}
}

func TestLineAt(t *testing.T) {
	text := []byte("\n{\n \"a\": {\n  \"b/c\":\n 1},\n \"d\": [\n1]}")
	for path, want := range map[string]int{"": 1, "/a": 3, "/a/b~1c": 5, "/a/x": 3, "/d": 6, "/d/0": 6, "/x": 1} {
		if got := LineAt(text, Path(path)); got != want {
			t.Errorf("%q is in line %d, not %d", path, got, want)
		}
	}
}
