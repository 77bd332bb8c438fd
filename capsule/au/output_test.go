package au

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestParseOutputTakes(t *testing.T) {
	cases := map[string]string{
		"an object":                  `{"text":"é","n":-1.5e3,"ok":true,"none":null}`,
		"an array":                   `[1,"a",{"a":1},{"a":1}]`,
		"space around it":            " \r\n\t{}\n",
		"a pair of surrogates":       `{"a":"\ud83d\ude00"}`,
		"an escaped backslash and u": `{"a":"\\ud800"}`,
		"a name in two objects":      `{"a":{"a":{"a":1}},"b":{"a":2}}`,
		"a number near nothing":      `[1e-5000]`,
		"64 levels":                  strings.Repeat("[", 64) + strings.Repeat("]", 64),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := ParseOutput(iotest.OneByteReader(strings.NewReader(text)), 0)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(out.JSON()), strings.Trim(text, space); got != want {
				t.Errorf("JSON() = %s, want %s", got, want)
			}
		})
	}
}

func TestParseOutputNamesEachMisbehaviour(t *testing.T) {
	cases := []struct {
		name, text string
		problem    OutputProblem
		offset     int
	}{
		{"nothing", "", OutputEmpty, 0},
		{"white space", " \n", OutputEmpty, 0},
		{"too much", `{"a":"` + strings.Repeat("x", 200) + `"}`, OutputTooLarge, 150},
		{"a picture", "\x89PNG\r\n", OutputNotUTF8, 0},
		{"half a character at the end", "{\"a\":\"\xc3", OutputNotUTF8, 6},
		{"a byte order mark", "\xef\xbb\xbf{}", OutputByteOrderMark, 0},
		{"a log line before", "loading model\n{\"a\":1}", OutputTextBefore, 14},
		{"a log line that starts like an array", "[info] loading\n{\"a\":1}\n", OutputTextBefore, 15},
		{"several such lines", "[info] {x}\n[warn] y\n[1]", OutputTextBefore, 20},
		{"words before, on the same line", `Result: {"a":1}`, OutputTextBefore, 8},
		{"a log line with brackets on the same line", `[info] {"a":1}`, OutputTextBefore, 7},
		{"a number before", "100%\n{\"a\":1}", OutputTextBefore, 5},
		{"words after", `{"a":1} done`, OutputTextAfter, 7},
		{"a number and words after", `{"a":1} 5 pages`, OutputTextAfter, 7},
		{"a bracket too many", `{"a":1}}`, OutputTextAfter, 7},
		{"two documents", `{"a":1}{"b":2}`, OutputTwoDocuments, 7},
		{"lines of JSON", "{\"a\":1}\n{\"b\":2}\n[]\n", OutputTwoDocuments, 7},
		{"a document and a number", "{} 5", OutputTwoDocuments, 2},
		{"words", "Hello World", OutputNotJSON, 0},
		{"NaN", `{"a":NaN}`, OutputNotJSON, 5},
		{"single quotes", `{'a':1}`, OutputNotJSON, 1},
		{"a comma too many", `{"a":1,}`, OutputNotJSON, 7},
		{"a document without its end", `{"a":[1,2`, OutputTruncated, 9},
		{"a string", `"text"`, OutputNotStructured, 0},
		{"null", "null\n", OutputNotStructured, 0},
		{"a number", "12", OutputNotStructured, 0},
		{"65 levels", strings.Repeat("[", 65) + strings.Repeat("]", 65), OutputTooDeep, 64},
		{"a field twice", `{"a":1,"b":{"a":1},"a":2}`, OutputAmbiguous, 19},
		{"a field twice, once escaped", `{"a":1,"\u0061" :2}`, OutputAmbiguous, 7},
		{"half a surrogate pair", `{"a":"\ud800"}`, OutputAmbiguous, 5},
		{"the other half", `["\udc00x"]`, OutputAmbiguous, 1},
		{"two first halves", `["\ud800\ud800"]`, OutputAmbiguous, 1},
		{"half a pair in a name", `{"\ud83d":1}`, OutputAmbiguous, 1},
		{"a number beyond a double", `{"a":1e400}`, OutputAmbiguous, 5},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out, err := ParseOutput(strings.NewReader(c.text), 150)
			var bad *OutputError
			if out != nil || !errors.As(err, &bad) {
				t.Fatalf("ParseOutput = %v, %v", out, err)
			}
			if bad.Problem != c.problem || bad.Offset != c.offset || bad.Message == "" || bad.Hint == "" {
				t.Errorf("%+v, want %s at %d", bad, c.problem, c.offset)
			}
		})
	}
}

func TestParseOutputReadsNoMoreThanItNeeds(t *testing.T) {
	endless := &counter{}
	_, err := ParseOutput(endless, 1000)
	var bad *OutputError
	if !errors.As(err, &bad) || bad.Problem != OutputTooLarge || endless.n > 1001 {
		t.Errorf("%v after %d bytes", err, endless.n)
	}
	exact := `{"a":"` + strings.Repeat("x", 100-8) + `"}`
	if _, err := ParseOutput(strings.NewReader(exact), 100); err != nil {
		t.Errorf("an output as long as the limit: %v", err)
	}
}

// counter is an endless text that knows how much of it was read.
type counter struct{ n int }

func (c *counter) Read(p []byte) (int, error) {
	c.n += len(p)
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestParseOutputHandsOnTheReadersError(t *testing.T) {
	broken := errors.New("broken pipe")
	_, err := ParseOutput(io.MultiReader(strings.NewReader("{}"), iotest.ErrReader(broken)), 0)
	var bad *OutputError
	if !errors.Is(err, broken) || errors.As(err, &bad) {
		t.Errorf("ParseOutput = %v", err)
	}
}

func TestParseOutputShowsNothingOfIt(t *testing.T) {
	for _, text := range []string{"canary", `{"canary":canary}`, `{"canary":1,"canary":2}`, "canary\n{}", `{} canary`, `["canary\ud800"]`, `{"a":"canary`} {
		_, err := ParseOutput(strings.NewReader(text), 0)
		if shown := fmt.Sprintf("%+v", err); err == nil || strings.Contains(shown, "canary") {
			t.Errorf("ParseOutput showed %s", shown)
		}
	}
}

func TestWarnings(t *testing.T) {
	long := strings.Repeat("é", MaxWarningRunes)
	cases := []struct {
		name, text string
		want       []string
	}{
		{"a list of texts", `{"text":"x","warnings":["low","Unread: \u00ff"]}`, []string{"low", "Unread: ÿ"}},
		{"what isn't text is left out", `{"warnings" : [1,"a",null,["b"]]}`, []string{"a"}},
		{"an escaped name", `{"w\u0061rnings":["a"]}`, []string{"a"}},
		{"a long text is cut", `{"warnings":["` + long + `é"]}`, []string{long}},
		{"none", `{"text":"x"}`, nil},
		{"another spelling", `{"Warnings":["a"]}`, nil},
		{"further down", `{"a":{"warnings":["a"]}}`, nil},
		{"in an array", `[{"warnings":["a"]}]`, nil},
		{"no list", `{"warnings":"a"}`, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out, err := ParseOutput(strings.NewReader(c.text), 0)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out.Warnings()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("too many are left out", func(t *testing.T) {
		out, err := ParseOutput(strings.NewReader(`{"warnings":["a"`+strings.Repeat(`,"a"`, MaxWarnings)+`]}`), 0)
		if err != nil || len(out.Warnings()) != MaxWarnings {
			t.Errorf("%d, %v", len(out.Warnings()), err)
		}
	})
}

func TestTheWorstOutputsAreSoonRefused(t *testing.T) {
	for name, text := range map[string]string{
		"open brackets, a line each": strings.Repeat("[\n", 1<<19),
		"documents without end":      strings.Repeat("{}", 1<<19) + "x",
		"open quotes":                strings.Repeat(`{"`, 1<<19),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseOutput(strings.NewReader(text), 0); err == nil {
				t.Error("it was taken")
			}
		})
	}
}
