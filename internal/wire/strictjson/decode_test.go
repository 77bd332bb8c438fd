package strictjson

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeKeepsWhatWasWritten(t *testing.T) {
	got, err := Decode([]byte(` {"z": 1.0, "a": [1e2, 12345678901234567890, true, false, null], "s": "\u00e9\ud83d\ude00", "": {}, "e": []} `))
	want := map[string]any{
		"z": json.Number("1.0"), "a": []any{json.Number("1e2"), json.Number("12345678901234567890"), true, false, nil},
		"s": "é😀", "": map[string]any{}, "e": []any{},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// refusals are texts that Decode refuses, and where it sees that.
var refusals = []struct {
	name, text    string
	problem       Problem
	offset, start int
	pointer       string
	message       string
	hint          string // a part of it
}{
	{"nothing", "", Syntax, 0, 0, "", "the text ends where a value was expected", ""},
	{"a byte order mark", "\xef\xbb\xbf{}", ByteOrderMark, 0, 0, "", "the text starts with a byte order mark", "UTF-8"},
	{"another encoding", "{\"a\":\n\"\xff\"}", NotUTF8, 7, 7, "", "the text is not valid UTF-8", "UTF-8"},
	{"a second document", "{}\n{}", Syntax, 3, 3, "", "there is more text after the end of the document", ""},
	{"a NUL behind it", "{}\x00", Syntax, 2, 2, "", "there is more text after the end of the document", ""},
	{"a name without quotes", `{"a":{b:1}}`, Syntax, 6, 6, "/a", "expected a field's name in double quotes, found 'b'", ""},
	{"no colon", `{"a" 1}`, Syntax, 5, 5, "", "expected a colon, found '1'", ""},
	{"no value", `{"a":[0,{"b":}]}`, Syntax, 13, 13, "/a/1/b", "expected a value, found '}'", ""},
	{"no comma", `{"a":[1 2]}`, Syntax, 8, 8, "/a", "expected a comma or ']', found '2'", ""},
	{"a comma too many", `{"a":1 ,}`, Syntax, 7, 7, "", "there is a comma after the last element", "remove"},
	{"no end", `{"a":[1`, Syntax, 7, 7, "/a", "the text ends where a comma or ']' was expected", ""},
	{"a string without an end", `{"a":"x`, Syntax, 5, 5, "/a", "the string that starts here has no end", ""},
	{"a raw line break", "[\"a\nb\"]", Syntax, 3, 3, "/0", "there is a control character in a string", `\n`},
	{"a Windows path", `["C:\dir"]`, Syntax, 4, 2 - 1, "/0", "the escape in this string is unknown", `\\`},
	{"a short escape", `["\u12"]`, Syntax, 2, 1, "/0", `\u needs four hexadecimal digits`, ""},
	{"a comment", `[1, // one` + "\n2]", Syntax, 4, 4, "/1", "expected a value, found '/'", "no comments"},
	{"single quotes", `['a']`, Syntax, 1, 1, "/0", `expected a value, found '\''`, "double quotes"},
	{"Python's None", `{"a": None}`, Syntax, 6, 6, "/a", "expected a value, found 'N'", "true, false and null"},
	{"Python's NaN", `{"a": NaN}`, Syntax, 6, 6, "/a", "expected a value, found 'N'", "JSON numbers"},
	{"a leading zero", `[01]`, Syntax, 1, 1, "/0", "this is not a number as JSON writes it", ""},
	{"a field twice", `{"a/b":[{"c~":1, "c~":2}]}`, DuplicateName, 17, 17, "/a~1b/0/c~0", `the field "c~" stands twice in one object`, "keep one"},
	{"a field twice, once escaped", `{"a":1,"\u0061":2}`, DuplicateName, 7, 7, "/a", `the field "a" stands twice in one object`, "keep one"},
	{"half a surrogate pair", `{"a":["xy\ud800z"]}`, HalfSurrogate, 9, 6, "/a/0", "there is half a surrogate pair in a string", ""},
	{"the other half first", `["\ude00\ud83d"]`, HalfSurrogate, 2, 1, "/0", "there is half a surrogate pair in a string", ""},
	{"half a pair in a name", `{"\ud83d":1}`, HalfSurrogate, 2, 1, "", "there is half a surrogate pair in a string", ""},
	{"a number beyond a double", `{"a":1e309}`, NumberOutOfRange, 5, 5, "/a", "a number is too large", "1.8e308"},
	{"a number beyond it in digits", `[` + strings.Repeat("9", 310) + `]`, NumberOutOfRange, 1, 1, "/0", "a number is too large", "1.8e308"},
	{"a long name", `{"` + strings.Repeat("k", MaxNameBytes+1) + `":1}`, TooLong, 1, 1, "", "a field's name is longer than 4096 bytes", ""},
	{"a long number", `[0.` + strings.Repeat("1", MaxNumberBytes) + `]`, TooLong, 1, 1, "/0", "a number has more than 400 digits", ""},
	{"65 arrays", strings.Repeat("[", 65) + strings.Repeat("]", 65), TooDeep, 65, 64, "", "the document is nested more than 64 levels deep", ""},
	{"65 objects", strings.Repeat(`{"a":`, 65), TooDeep, 65 * 5, 64 * 5, "", "the document is nested more than 64 levels deep", ""},
}

func TestRefusalsSayWhereAndWhy(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode([]byte(c.text))
			var bad *Error
			if !errors.As(err, &bad) {
				t.Fatalf("Decode = %v", err)
			}
			if bad.Problem != c.problem || bad.Offset != c.offset || bad.Start != c.start || bad.Pointer != c.pointer || bad.Message() != c.message || !strings.Contains(bad.Hint, c.hint) {
				t.Errorf("%+v: %s", bad, bad.Message())
			}
			if checked := Check([]byte(c.text), Rules{}); checked == nil || checked.Error() != err.Error() {
				t.Errorf("Check says %v, Decode %v", checked, err)
			}
		})
	}
}

func TestLinesAndColumnsCountBytesFromOne(t *testing.T) {
	_, err := Decode([]byte("{\n  \"é\": x\n}"))
	if err == nil || err.Error() != "line 2, column 9: expected a value, found 'x'" {
		t.Error(err)
	}
}

func TestRulesTakeWhatTheySay(t *testing.T) {
	ambiguous, unbounded := Rules{Ambiguous: true}, Rules{Unbounded: true}
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			differs := c.problem == DuplicateName || c.problem == HalfSurrogate || c.problem == NumberOutOfRange
			if err := Check([]byte(c.text), ambiguous); (err == nil) != differs {
				t.Errorf("with Ambiguous: %v", err)
			}
			if err := Check([]byte(c.text), unbounded); (err == nil) != (c.problem == TooLong) {
				t.Errorf("with Unbounded: %v", err)
			}
		})
	}
	t.Run("a number near nothing", func(t *testing.T) {
		if Check([]byte("[1e-5000]"), Rules{}) == nil || Check([]byte("[1e-5000]"), unbounded) != nil {
			t.Error("its exponent is bounded by default alone")
		}
	})
}

func TestValuesAreCounted(t *testing.T) {
	const document = `{"a":[1,"b",null],"c":{}}` // 6 values
	if err := Check([]byte(document), Rules{Values: 6}); err != nil {
		t.Error(err)
	}
	err := Check([]byte(document), Rules{Values: 5})
	var bad *Error
	if !errors.As(err, &bad) || bad.Problem != TooMany || bad.Pointer != "/c" {
		t.Errorf("%+v", err)
	}
}

func TestSixtyFourLevelsAreTaken(t *testing.T) {
	text := strings.Repeat("[", MaxDepth-1) + `{"a":1}` + strings.Repeat("]", MaxDepth-1)
	if _, err := Decode([]byte(text)); err != nil {
		t.Error(err)
	}
}

func TestManyOpenBracketsAreSoonRefused(t *testing.T) {
	for _, bracket := range []string{"[", `{"a":`, "[\n"} {
		start := time.Now()
		_, err := Decode([]byte(strings.Repeat(bracket, 1_000_000)))
		if took := time.Since(start); err == nil || took > time.Minute {
			t.Errorf("Decode = %v after %v", err, took)
		}
	}
}

func TestIsInteger(t *testing.T) {
	for text, want := range map[json.Number]bool{"1": true, "-0": true, "1.0": true, "1.50": false, "1e3": true, "1.5e1": true, "15e-1": false, "0.0": true} {
		if got := IsInteger(text); got != want {
			t.Errorf("IsInteger(%s) = %v", text, got)
		}
	}
}
