package contract

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestDecodeRefuses(t *testing.T) {
	cases := []struct {
		name, raw string
		want      string // in the message
		hint      string
	}{
		{"nothing", "", "the payload is empty", "{}"},
		{"white space only", " \n\t", "the payload is empty", "{}"},
		{"an array", "[1]", "the payload is an array, expected an object", "wrap"},
		{"a string", `"x"`, "is a string", ""},
		{"a number", `1`, "is an integer", ""},
		{"null", "null", "is null", ""},
		{"text after the object", "{}\n{}", "line 2, column 1: there is more text", ""},
		{"a byte order mark", "\xef\xbb\xbf{}", "byte order mark", "UTF-8"},
		{"a second byte order mark", "{}\xef\xbb\xbf", "more text after the end", ""},
		{"invalid UTF-8", "{\"a\":\n\"\xff\"}", "line 2, column 2: the text is not valid UTF-8", ""},
		{"UTF-16", "\xff\xfe{\x00}\x00", "not valid UTF-8", ""},
		{"a missing value", `{"a":}`, "expected a value, found '}'", ""},
		{"a missing colon", `{"a" 1}`, "expected a colon", ""},
		{"a missing comma", `{"a":1 "b":2}`, "expected a comma or '}'", ""},
		{"a missing end", `{"a":1`, "the text ends where a comma", ""},
		{"a string without an end", `{"a":"x`, "the string that starts here has no end", ""},
		{"a comma after the last field", `{"a":1,}`, "comma after the last", "remove"},
		{"a comma after the last item", `{"a":[1,]}`, "comma after the last", "remove"},
		{"single quotes", `{'a':1}`, "expected a field's name", "double quotes"},
		{"a comment", `{"a": /* x */ 1}`, "expected a value", "no comments"},
		{"Python's NaN", `{"a": NaN}`, "expected a value", "NaN"},
		{"Python's Infinity", `{"a": -Infinity}`, "not a number", ""},
		{"Python's True", `{"a": True}`, "expected a value", "true, false and null"},
		{"a bare word", `{"a": truer}`, "expected a comma", ""},
		{"a name that stands twice", `{"a":{"b":1,"b":2}}`, `"b" stands twice`, "keep one"},
		{"a name that stands twice in disguise", `{"a":1,"\u0061":2}`, `"a" stands twice`, ""},
		{"a raw control character", "{\"a\":\"x\ny\"}", "control character", `\n`},
		{"an unknown escape", `{"a":"C:\dir"}`, "escape", `\\`},
		{"a short escape", `{"a":"\u12"}`, "four hexadecimal", ""},
		{"half a surrogate pair", `{"a":"\ud83d"}`, "surrogate", ""},
		{"half a pair before a letter", `{"a":"\ud83d\u0041"}`, "surrogate", ""},
		{"a low surrogate twice", `{"a":"\ude00\ude00"}`, "surrogate", ""},
		{"a pair the wrong way round", `{"a":"\ude00\ud83d"}`, "surrogate", ""},
		{"a leading zero", `{"a":01}`, "not a number", ""},
		{"a plus sign", `{"a":+1}`, "expected a value", ""},
		{"a bare minus", `{"a":-}`, "not a number", ""},
		{"a dot without digits", `{"a":1.}`, "not a number", ""},
		{"an exponent without digits", `{"a":1e}`, "not a number", ""},
		{"a giant exponent", `{"a":1e1000000}`, "too large", "1.8e308"},
		{"a giant negative exponent", `{"a":1e-1000000}`, "too large", ""},
		{"an exponent that overflows an int", `{"a":1e99999999999999999999}`, "too large", ""},
		{"a number over a double", `{"a":1e309}`, "too large", ""},
		{"a number over a double in digits", `{"a":` + strings.Repeat("9", 310) + `}`, "too large", ""},
		{"a number of a thousand digits", `{"a":` + strings.Repeat("9", 1000) + `}`, "more than 400 digits", ""},
		{"a very long name", `{"` + strings.Repeat("k", 5000) + `":1}`, "longer than 4096", ""},
		{"65 levels of arrays", `{"a":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`, "more than 64 levels", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode([]byte(c.raw), 0)
			if !fault.Is(err, fault.Input) {
				t.Fatalf("Decode = %v, want an Input fault", err)
			}
			e := fault.Public(err)
			if !strings.Contains(e.Msg, c.want) || !strings.Contains(e.Hint, c.hint) {
				t.Errorf("Decode says %q (%s), want %q (%s)", e.Msg, e.Hint, c.want, c.hint)
			}
		})
	}
}

func TestDecodeRefusesAPayloadOverTheLimit(t *testing.T) {
	_, err := Decode([]byte(`{"a":"xxxxxxxx"}`), 10)
	if !fault.Is(err, fault.TooLarge) {
		t.Fatalf("Decode = %v, want TooLarge", err)
	}
	e := fault.Public(err)
	want := "put large data in a file and declare the field with format file_path; see docs/capsules.md"
	if e.Msg != "the payload has 16 bytes, the limit is 10" || e.Hint != want {
		t.Errorf("Decode says %q (%s)", e.Msg, e.Hint)
	}
	if _, err := Decode([]byte(`{"a":"xxxxxxxx"}`), 16); err != nil {
		t.Errorf("Decode at the limit = %v", err)
	}
	if _, err := Decode(make([]byte, DefaultMaxBytes+1), 0); !fault.Is(err, fault.TooLarge) {
		t.Errorf("Decode over the default limit = %v, want TooLarge", err)
	}
}

func TestDecodeRefusesDeepNestingAtOnce(t *testing.T) {
	for _, bracket := range []string{"[", `{"a":`} {
		raw := []byte(`{"a":` + strings.Repeat(bracket, 100_000))
		var err error
		var took time.Duration
		for range 10 { // what the process does beside it counts, too
			start := processorTime()
			_, err = Decode(raw, 0)
			if took = processorTime() - start; took <= 50*time.Millisecond {
				break
			}
		}
		if took > 50*time.Millisecond {
			t.Errorf("refusing 100,000 levels took %v", took)
		}
		if err == nil || !strings.Contains(err.Error(), "more than 64 levels") {
			t.Errorf("Decode = %v", err)
		}
	}
}

func TestDecodeNamesThePlaceOfATwin(t *testing.T) {
	_, err := Decode([]byte(`{"a/b":[{"c":1,"c":1}]}`), 0)
	found := fault.Public(err).Findings
	if len(found) != 1 || found[0].Pointer != "/a~1b/0/c" {
		t.Errorf("findings = %v", found)
	}
}

func TestPayloadKeepsOrderAndNumbers(t *testing.T) {
	p := payload(t, ` { "z" : 1.0, "a" : [ 1e2 , 12345678901234567890 ], "s": "\u00e9<>\ud83d\ude00" } `)
	want := `{"z":1.0,"a":[1e2,12345678901234567890],"s":"\u00e9<>\ud83d\ude00"}`
	if got := string(p.JSON()); got != want {
		t.Errorf("JSON() = %s, want %s", got, want)
	}
	if s, _ := p.Get("s"); s != "é<>😀" {
		t.Errorf("Get(s) = %q", s)
	}
	if n, _ := p.Get("z"); n != json.Number("1.0") {
		t.Errorf("Get(z) = %v", n)
	}
	if _, ok := p.Get("b"); ok {
		t.Error("Get found a field that isn't there")
	}
}

func TestPayloadDoesNotChange(t *testing.T) {
	raw := []byte(`{"a":{"b":[1]}}`)
	p, err := Decode(raw, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw[2] = 'x'
	p.JSON()[2] = 'y'
	a, _ := p.Get("a")
	a.(map[string]any)["b"].([]any)[0] = "changed"
	if _, err := p.With("a.b", 2); err != nil {
		t.Fatal(err)
	}
	b, _ := p.Get("a")
	if got := string(p.JSON()); got != `{"a":{"b":[1]}}` || b.(map[string]any)["b"].([]any)[0] != json.Number("1") {
		t.Errorf("the payload became %s, %v", got, b)
	}
}

func TestZeroPayloadIsAnEmptyObject(t *testing.T) {
	var p Payload
	if !p.IsZero() || string(p.JSON()) != "{}" {
		t.Errorf("zero payload: %v %s", p.IsZero(), p.JSON())
	}
	q, err := p.With("a.b", "x")
	if err != nil || string(q.JSON()) != `{"a":{"b":"x"}}` || q.IsZero() {
		t.Errorf("With = %s, %v", q.JSON(), err)
	}
	if empty := payload(t, "{}"); empty.IsZero() {
		t.Error("an empty object that was decoded is not the zero payload")
	}
}

func TestWith(t *testing.T) {
	p := payload(t, `{"z":1.0,"o":{"b":1e1,"a":2},"s":"x"}`)
	cases := []struct {
		name, path string
		value      any
		want       string
		err        string
	}{
		{"a field keeps its place", "z", 3, `{"z":3,"o":{"b":1e1,"a":2},"s":"x"}`, ""},
		{"a new field goes to the end", "n", "<&>", `{"z":1.0,"o":{"b":1e1,"a":2},"s":"x","n":"<&>"}`, ""},
		{"a nested field", "o.a", nil, `{"z":1.0,"o":{"b":1e1,"a":null},"s":"x"}`, ""},
		{"objects on the way are made", "p.q.r", json.Number("1.50"), `{"z":1.0,"o":{"b":1e1,"a":2},"s":"x","p":{"q":{"r":1.50}}}`, ""},
		{"a path through a string is refused", "s.t", 1, "", "leads through a value that isn't an object"},
		{"an empty part is refused", "o..a", 1, "", "empty part"},
		{"an empty path is refused", "", 1, "", "empty part"},
		{"a value that JSON can't hold is refused", "z", func() {}, "", "can't be written as JSON"},
		{"a value that Decode refuses is refused", "z", json.RawMessage(`{"a":1,"a":2}`), "", "stands twice"},
		{"a path that is too deep is refused", strings.Repeat("a.", 64) + "a", 1, "", "more than 64"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			q, err := p.With(c.path, c.value)
			if c.err != "" {
				if !fault.Is(err, fault.Input) || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("With = %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || string(q.JSON()) != c.want {
				t.Errorf("With = %s, %v, want %s", q.JSON(), err, c.want)
			}
		})
	}
}

func TestNewPayload(t *testing.T) {
	p, err := NewPayload(map[string]any{"b": 1.5, "a": []string{"x"}})
	if err != nil || string(p.JSON()) != `{"a":["x"],"b":1.5}` {
		t.Errorf("NewPayload = %s, %v", p.JSON(), err)
	}
	if p, err := NewPayload(nil); err != nil || !p.IsZero() {
		t.Errorf("NewPayload(nil) = %s, %v", p.JSON(), err)
	}
	if _, err := NewPayload(map[string]any{"a": make(chan int)}); !fault.Is(err, fault.Input) {
		t.Errorf("NewPayload of a channel = %v", err)
	}
}

func TestPayloadStandsInARecord(t *testing.T) {
	type record struct{ Input, Output Payload }
	text, err := json.Marshal(record{Input: payload(t, `{"b":1.0,"a":2}`)})
	if err != nil || string(text) != `{"Input":{"b":1.0,"a":2},"Output":{}}` {
		t.Fatalf("Marshal = %s, %v", text, err)
	}
	var back record
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"b":1.0,"a":2}`, string(back.Input.JSON())); diff != "" {
		t.Error(diff)
	}
}

// payload decodes what a test wrote.
func payload(t testing.TB, raw string) Payload {
	t.Helper()
	p, err := Decode([]byte(raw), 0)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return p
}
