package secrets

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

const slashed Secret = `sk-ab/cd+ef=="gh\ij`

// look gives a Finder a text in parts of a size, and returns what comes before the secret.
func look(s Secret, text string, size int) (before string, found bool) {
	f := NewFinder(s)
	for at := 0; ; at += size {
		end := min(at+size, len(text))
		free, found := f.Next([]byte(text[at:end]), end == len(text))
		if found || end == len(text) {
			return text[:free], found
		}
		if free > int64(end) {
			panic("more is free than came")
		}
	}
}

func TestASecretIsFoundHoweverItIsEscaped(t *testing.T) {
	for name, form := range map[string]string{
		"as it is":            `sk-ab/cd+ef=="gh\ij`,
		"in JSON":             `sk-ab/cd+ef==\"gh\\ij`,
		"by PHP":              `sk-ab\/cd+ef==\"gh\\ij`,
		"by numbers":          `sk\u002dab\u002Fcd\u002bef\u003D=\u0022gh\u005cij`,
		"all of it":           everyByte(`\u%04x`),
		"JSON in JSON":        `sk-ab\\/cd+ef==\\\"gh\\\\ij`,
		"numbers in JSON":     `sk\\u002dab/cd+ef==\\u0022gh\\\\ij`,
		"by two hex digits":   `sk\x2dab/cd+ef==\x22gh\x5cij`,
		"by eight hex digits": everyByte(`\U%08X`),
		"in an address":       `sk-ab%2Fcd%2bef%3D%3d%22gh%5Cij`,
		"in HTML":             `sk-ab&#47;cd&#x2B;ef&#x3d;&#061;&quot;gh&#92;ij`,
		"mixed":               `s\u006B-ab\/c%64+ef=&#61;"gh\\ij`,
	} {
		text := "it was <" + form + "> and more"
		for size := 1; size <= len(text); size++ {
			if before, found := look(slashed, text, size); !found || before != "it was <" {
				t.Fatalf("%s, in parts of %d: %q, %v", name, size, before, found)
			}
		}
		if !slashed.In([]byte(text)) {
			t.Errorf("%s: not in it", name)
		}
	}
}

func everyByte(format string) string {
	var b strings.Builder
	for _, c := range []byte(slashed) {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

func TestWhatIsNotTheSecretIsFree(t *testing.T) {
	for _, text := range []string{
		"", `\`, `\u`, `\u002`, `%`, `%2`, `&`, `&#4`, "50% & more", `sk-ab\/cd+ef=="gh\i`, `sk-ab\u002gcd`, "&nothing;", strings.Repeat(`\`, 100) + "u002d",
		"\\u4e2d\\ud83d\\ude00", strings.Repeat("sk-ab/", 10),
	} {
		for size := 1; size <= len(text)+1; size++ {
			if before, found := look(slashed, text, size); found || before != text {
				t.Errorf("%q, in parts of %d: %q, %v", text, size, before, found)
			}
		}
	}
	if f := NewFinder("abababac"); true {
		if free, found := f.Next([]byte("xabababab"), false); free != 3 || found {
			t.Errorf("%d, %v: the longest beginning of it is held", free, found)
		}
	}
}

func TestAShortSecretIsFoundAsItIsAlone(t *testing.T) {
	if !Secret("a-b").In([]byte("xa-by")) || Secret("a-b").In([]byte(`a\u002db`)) || Secret("").In([]byte("x")) || Secret("").In(nil) {
		t.Error("a short secret")
	}
}

func TestAFinderTakesATimeThatGrowsWithTheText(t *testing.T) {
	long := Secret(strings.Repeat("a", 8<<10) + "b")
	for _, text := range []string{strings.Repeat("a", 1<<18), strings.Repeat(`\`, 1<<18), strings.Repeat(`\\u0061`, 1<<16), strings.Repeat("&#97;", 1<<16), "a" + strings.Repeat("%5c", 1<<17)} {
		began, f := time.Now(), NewFinder(long)
		for part := range slices.Chunk([]byte(text), 64) {
			free, found := f.Next(part, false)
			if held := f.read - free; found || len(f.undecided) > maxEscape || held > int64(maxEscape*(len(long)+1)) {
				t.Fatalf("%q…: %v, %d bytes kept, %d held", text[:5], found, len(f.undecided), held)
			}
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%q…: %v", text[:5], took)
		}
	}
}

// What is found begins where the secret does, in whichever parts the text comes, and all else is free.
func FuzzFinder(f *testing.F) {
	f.Add("some ", "\\u002d more", byte(3))
	f.Add(`\`, "sk-ab", byte(1))
	f.Add("&#", "%2", byte(7))
	fuzzbound.Run(f, func(t *testing.T, before, after string, size byte) {
		for _, form := range []string{string(slashed), `sk\u002dab\/cd+ef==\"gh\\ij`} {
			text := before + "|" + form + after
			got, found := look(slashed, text, int(size)+1)
			if !found || len(got) > len(before)+1 {
				t.Errorf("%q in parts of %d: %q, %v", text, size, got, found)
			}
		}
		text := before + after
		whole, there := look(slashed, text, max(len(text), 1))
		if got, found := look(slashed, text, int(size)+1); got != whole || found != there {
			t.Errorf("%q in parts of %d: %q, %v, and whole %q, %v", text, size, got, found, whole, there)
		}
	})
}

func BenchmarkFinder(b *testing.B) {
	part := bytes.Repeat([]byte(`{"text": "some words, 50% of it\n"}, `), 1000)
	b.SetBytes(int64(len(part)))
	for b.Loop() {
		NewFinder(slashed).Next(part, true)
	}
}
