package mask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

const given = "the-very-own value\nof two lines"

var cases = map[string]struct{ text, want string }{
	"nothing":               {"a task-management-of-many-things, 3 tokens: fine", "a task-management-of-many-things, 3 tokens: fine"},
	"a key of AWS":          {"id AKIAIOSFODNN7EXAMPLE.", "id ****MPLE."},
	"a key of a model":      {"use sk-proj-abcdefghijklmnop1234 now", "use ****1234 now"},
	"a key of GitHub":       {"ghp_abcdefghijklmnopqrstuvwxyz", "****wxyz"},
	"a password":            {"PASSWORD=hunter2 next", "PASSWORD=**** next"},
	"a long token":          {"?access_token=abcdefghijklmnop&b=1", "?access_token=****mnop&b=1"},
	"JSON in a text":        {`{"secret": "abcdefghijklmnop"}`, `{"secret": "****mnop"}`},
	"an address":            {"write to ada.l+x@example.org.", "write to ****.org."},
	"addresses in a chain":  {"to ada@exada.lix@example.org.", "to ****.org."},
	"an address and an @":   {"to ada+x@exada.lix@emple..l", "to ****e..l"},
	"no address":            {"a@b, user@host", "a@b, user@host"},
	"a value that is given": {"is " + given + "!", "is ****ines!"},
	"a PEM block":           {"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabc=\n-----END RSA PRIVATE KEY-----\nb", "a\n" + pemHidden + "\nb"},
	"an unfinished PEM":     {"a -----BEGIN KEY-----\nMIIB", "a " + pemHidden},
}

func TestHoldsKeyKnowsKeysAlone(t *testing.T) {
	keys := []string{"a key of AWS", "a key of a model", "a key of GitHub", "a PEM block"}
	for name, c := range cases {
		if got := HoldsKey([]byte(c.text)); got != slices.Contains(keys, name) {
			t.Errorf("%s: %v", name, got)
		}
	}
	for text, want := range map[string]bool{
		"-----BEGIN CERTIFICATE-----\nPRIVATE KEY": false, "-----BEGIN PRIVATE KEY": true, "-----BEGIN PRIVATE KEYS-----": false, "--": false, "": false,
	} {
		if got := HoldsKey([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestText(t *testing.T) {
	m := New(given, "abc", hidden)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := m.Text(c.text); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if again := m.Text(c.want); again != c.want {
				t.Errorf("masked twice it is %q, once %q", again, c.want)
			}
			for size := 1; size < len(c.text); size++ {
				if got := inPieces(m, []byte(c.text), size); got != c.want {
					t.Fatalf("in pieces of %d bytes it is %q, want %q", size, got, c.want)
				}
			}
		})
	}
}

func inPieces(m *Masker, text []byte, size int) string {
	var out bytes.Buffer
	w := NewWriter(&out, m)
	for len(text) > 0 {
		n := min(size, len(text))
		_, _ = w.Write(text[:n])
		text = text[n:]
	}
	_ = w.Close()
	return out.String()
}

// TestLines gives each line by itself, and some in two.
func TestLines(t *testing.T) {
	m := New(given)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			lines := strings.Split(c.text, "\n")
			for cut := range lines[len(lines)-1] {
				masked := NewLines(m)
				var got strings.Builder
				for i, line := range lines {
					if last := i == len(lines)-1; last && cut > 0 {
						got.WriteString(masked.Next(line[:cut], true))
						line = line[cut:]
					}
					shown := masked.Next(line, false)
					if i < len(lines)-1 && strings.Contains(shown, "\n") {
						t.Errorf("a line is several: %q", shown)
					}
					got.WriteString(shown + "|")
				}
				got.WriteString(masked.Rest())
				flat := strings.NewReplacer("|", "", "\n", "")
				if flat.Replace(got.String()) != flat.Replace(c.want) {
					t.Errorf("%q, want %q", got.String(), c.want)
				}
				if strings.Count(got.String(), "|") != len(lines) {
					t.Errorf("not one line for each of %d: %q", len(lines), got.String())
				}
			}
		})
	}
}

// A line is known at its end, whatever may follow.
func TestALineIsShownAtOnce(t *testing.T) {
	lines := NewLines(New(given))
	for _, text := range []string{"working", "token=abc", "-----BEGIN", ""} {
		want := strings.ReplaceAll(text, "abc", hidden)
		if got := lines.Next(text, false); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := lines.Next("is the-very-own value", false); got != "is " {
		t.Errorf("%q: what may be the first line of a value is shown", got)
	}
	if got := lines.Next("or not", false); got != "the-very-own value\nor not" {
		t.Errorf("%q", got)
	}
}

func TestWithoutAddresses(t *testing.T) {
	if got := New().WithoutAddresses().Text("ada@example.org, token=abc"); got != "ada@example.org, token=****" {
		t.Error(got)
	}
}

func TestNamesOfADocument(t *testing.T) {
	for name, c := range map[string]struct{ document, want string }{
		"a given value":        {`{"the-very-own value\nof two lines":1}`, `{"****ines":1}`},
		"an escaped one":       {`{"is the-very-own \u0076alue\nof two lines!":{"n" : "x"}}`, `{"is ****ines!":{"n" : "x"}}`},
		"a key":                {`{"a":{"sk-abcdefghijklmnop":"sk-abcdefghijklmnop"}}`, `{"a":{"****mnop":"****mnop"}}`},
		"two of the same":      {`{"sk-abcdefghijklmnop":1,"sk-ABCDefghijklmnop":2,"sk-abcdefghIJKLmnop":3}`, `{"****mnop":1,"2-****mnop":2,"3-****mnop":3}`},
		"one that is there":    {`{"sk-abcdefghijklmnop":1,"sk-ABCDefghijklmnop":2,"****mnop":3,"2-****mnop":4}`, `{"3-****mnop":1,"4-****mnop":2,"****mnop":3,"2-****mnop":4}`},
		"of two objects":       {`[{"sk-abcdefghijklmnop":{"sk-abcdefghijklmnop":1}},{"sk-abcdefghijklmnop":2}]`, `[{"****mnop":{"****mnop":1}},{"****mnop":2}]`},
		"a secret behind one":  {`{"sk-abcdefghijklmnop password":"hunter2"}`, `{"****mnop password":"****"}`},
		"twice, none masked":   {`{"a":1,"a":2}`, `{"a":1,"a":2}`},
		"what is in a text":    {`{"a":"{\"sk-abcdefghijklmnop\":1}"}`, `{"a":"{\"****mnop\":1}"}`},
		"a list and no object": {`["sk-abcdefghijklmnop",[],{}]`, `["****mnop",[],{}]`},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(given)
			got, err := m.JSON([]byte(c.document))
			if err != nil || string(got) != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
			if again, err := m.JSON(got); err != nil || string(again) != c.want {
				t.Errorf("masked twice it is %s, %v", again, err)
			}
		})
	}
}

func TestManyNamesThatBecomeTheSameTakeNoLongTime(t *testing.T) {
	var document strings.Builder
	const many = 100_000
	for i := range many {
		fmt.Fprintf(&document, `,"token=%d":0`, i)
	}
	got, err := New().JSON([]byte("{" + document.String()[1:] + "}"))
	var names map[string]int
	if err == nil {
		err = json.Unmarshal(got, &names)
	}
	if err != nil || len(names) != many {
		t.Errorf("%d names are left of %d: %v", len(names), many, err)
	}
}

func TestJSON(t *testing.T) {
	const document = `{ "a":["x", "sk-abcdefghijklmnop<\u0041>"], "password" : "pa\"ss word that is long", "n": 1.0, "token": {"b": "c"}}`
	const want = `{ "a":["x", "****mnop<A>"], "password" : "****long", "n": 1.0, "token": {"b": "c"}}`
	got, err := New().JSON([]byte(document))
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if _, err := New().JSON([]byte(`{"a":`)); err == nil {
		t.Error("half a document is taken")
	}
}

// A long stream without any border is held back in part only, and nothing in it survives.
func TestALongStream(t *testing.T) {
	secret := "sk-" + strings.Repeat("q", 40)
	text := []byte(strings.Repeat(strings.Repeat("x", 4999)+" "+secret+" ", 200))
	m := New()
	w := NewWriter(&bytes.Buffer{}, m)
	for from := 0; from < len(text); from += 700 {
		_, _ = w.Write(text[from:min(len(text), from+700)])
		if len(w.held) > 4*portion {
			t.Fatalf("%d bytes are held back", len(w.held))
		}
	}
	whole := m.Text(string(text))
	if strings.Contains(whole, secret) || strings.Count(whole, hidden) != 200 {
		t.Errorf("%d of 200 are masked", strings.Count(whole, hidden))
	}
	for _, size := range []int{1, 1023, 40000} {
		if inPieces(m, text, size) != whole {
			t.Errorf("in pieces of %d bytes it is another text", size)
		}
	}
}

func FuzzMask(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.text), uint16(7))
	}
	fuzzbound.Run(f, func(t *testing.T, text []byte, size uint16) {
		m := New(given)
		once := m.Text(string(text))
		if got := inPieces(m, text, int(size)+1); got != once {
			t.Fatalf("in pieces of %d it is %q, whole %q", int(size)+1, got, once)
		}
		if strings.Contains(once, given) {
			t.Fatal("the value that was given is there")
		}
		if twice := m.Text(once); twice != once && len(text) <= maxMatch { // what is longer is masked in part
			t.Fatalf("twice %q, once %q", twice, once)
		}
	})
}

func BenchmarkText(b *testing.B) {
	text := []byte(strings.Repeat("2026-11-23 step 7: the agent read 12 files of the project and wrote src/main.py (ok)\n", 12_000))
	m := New(given)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		w := NewWriter(bytes.NewBuffer(make([]byte, 0, len(text))), m)
		_, _ = w.Write(text)
		_ = w.Close()
	}
}

// TestPieces gives a text in pieces of each size. All of it is shown in the end, and masked.
func TestPieces(t *testing.T) {
	m := New(given)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(c.text); size++ {
				masked := NewPieces(m)
				var got strings.Builder
				for rest := c.text; rest != ""; rest = rest[min(size, len(rest)):] {
					got.WriteString(masked.Next(rest[:min(size, len(rest))]))
				}
				got.WriteString(masked.Pause())
				if got.String() != c.want {
					t.Fatalf("in pieces of %d bytes it is %q, want %q", size, got.String(), c.want)
				}
			}
		})
	}
}

// A text goes on while it is written: three words are held back, and no line that has ended.
func TestAPieceIsShownSoon(t *testing.T) {
	pieces := NewPieces(New())
	for _, c := range [][2]string{
		{"one two three", ""},
		{" four", "one "},
		{" five six\n", "two three four five six\n"},
		{"token", ""},
		{" = ab", ""},
		{"cdef and more of it", "token = **** and "},
		{"", ""},
	} {
		if got := pieces.Next(c[0]); got != c[1] {
			t.Errorf("with %q come %q, want %q", c[0], got, c[1])
		}
	}
	if got := pieces.Pause(); got != "more of it" {
		t.Errorf("in the end come %q", got)
	}
	if got := pieces.Next("-----BEGIN KEY-----\nMIIB") + pieces.Pause() + pieces.Next("abc=\n-----END KEY-----\nb\n"); got != pemHidden+"\nb\n" {
		t.Errorf("a PEM block over a pause: %q", got)
	}
}
