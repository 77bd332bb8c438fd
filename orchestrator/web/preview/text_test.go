package preview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestATextIsShownAsItIs(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 5000) + "1" + strings.Repeat(",1", 50_000) + strings.Repeat("]", 5000)
	for name, c := range map[string]struct {
		content, name string
		want          Preview
	}{
		"a text":                         {"a < b\r\n\tc", "a", Preview{Kind: Text, Text: "a < b\n\tc"}},
		"Markdown":                       {"<p align=left>\n# a", "a.md", Preview{Kind: Text, Text: "<p align=left>\n# a"}},
		"Markdown that begins as JSON":   {"[a](b)", "a.md", Preview{Kind: Text, Text: "[a](b)"}},
		"XML":                            {"<?xml version=\"1.0\"?><a/>", "a.xml", Preview{Kind: Text, Text: "<?xml version=\"1.0\"?><a/>"}},
		"a text that drives a terminal":  {"\uFEFFa\x1b[2Jb\u202ec\rd", "a.txt", Preview{Kind: Text, Text: "a\uFFFD[2Jb\uFFFDc\uFFFDd"}},
		"JSON":                           {`{"b":1.0,"a":[1,"<\u202e"],"a":{}} `, "a.json", Preview{Kind: JSON, Text: "{\n  \"b\": 1.0,\n  \"a\": [\n    1,\n    \"<\\u202e\"\n  ],\n  \"a\": {}\n}"}},
		"JSON that turns text around":    {"[\"\u202e\"]", "a.json", Preview{Kind: JSON, Text: "[\n  \"\uFFFD\"\n]"}},
		"JSON without a name":            {` [1]`, "out", Preview{Kind: JSON, Text: "[\n  1\n]"}},
		"JSON of a word":                 {`"a"`, "a.json", Preview{Kind: JSON, Text: `"a"`}},
		"JSON that is broken":            {`{"a":`, "a.json", Preview{Kind: Text, Text: `{"a":`, Note: "it isn't valid JSON"}},
		"JSON that would become too big": {deep, "a.json", Preview{Kind: JSON, Text: deep, Note: "not indented: it would be too long"}},
		"lines of JSON":                  {"{}\n{}", "a.jsonl", Preview{Kind: Text, Text: "{}\n{}"}},
		"JSON that is cut": {
			"[" + strings.Repeat("1,", maxHead) + "1]", "a.json",
			Preview{Kind: Text, Text: "[" + strings.Repeat("1,", maxHead/2-1) + "1", Note: "the first 256 KiB"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, of(c.content, c.name)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheSizeOfIndentedJSONIsKnownBefore(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"a\"[,":[1,2,{"b":{}},[]],"c":"\\"}`, `[[[[1,2],3],4],5]`, `7`, `{}`} {
		if got, least := indentedSize([]byte(text)), len(of(text, "a.json").Text); got < least || got > 2*least+10 {
			t.Errorf("%s: %d for %d bytes", text, got, least)
		}
	}
}

func TestALineOfALogIsCleaned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, want string }{
		"a line":              {"22:39\tok < é 日", "22:39\tok < é 日"},
		"colours":             {"\x1b[1;31mred\x1b[0m \x1b[38;5;9mand\x1b[m more", "red and more"},
		"a link":              {"see \x1b]8;;https://evil.example\x1b\\here\x1b]8;;\x1b\\.", "see here."},
		"a title":             {"\x1b]0;a title\aok", "ok"},
		"one without an end":  {"\x1b]0;ok", "0;ok"},
		"single escapes":      {"\x1b7\x1b(Ba\x1bc\x1b", "a"},
		"control characters":  {"a\x00\x08\x7f\u0085\u009bb\n", "ab"},
		"turned text":         {"a\u202egnp.exe\u2069 \u200f", "agnp.exe "},
		"a progress bar":      {"5%\r\x1b[K10%\rdone\r", "done"},
		"other bytes":         {"caf\xe9", "caf\uFFFD"},
		"a part of a colour":  {"a\x1b[3", "a"},
		"as long as may be":   {strings.Repeat("é", 10_000) + "\x1b[0m", strings.Repeat("é", 10_000)},
		"one that is too big": {strings.Repeat("é", 10_000) + "abc", strings.Repeat("é", 10_000) + "… (and 3 bytes more)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Clean(c.line); got != c.want {
				t.Errorf("%.300q, want %.300q", got, c.want)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"\x1b[31ma\x1b[0m", "\x1b]8;;a\x1b\\b", "\x1bP\x1b", "a\rb\xff\u202e", "\u009b1m", "\x1b\x1b[", "\x1b("} {
		f.Add(seed, uint16(1))
		f.Add(seed, uint16(6000))
	}
	fuzzbound.Run(f, func(t *testing.T, line string, times uint16) {
		if int(times)*len(line) > 1<<20 {
			return
		}
		line = strings.Repeat(line, int(times))
		got := Clean(line)
		if !isHarmless(got, "\t") || len([]rune(got)) > maxLine+len(fmt.Sprint("… (and ", len(line), " bytes more)")) {
			t.Fatalf("%.300q", got)
		}
		if again := Clean(got); len([]rune(got)) <= maxLine && again != got {
			t.Fatalf("%.300q, then %.300q", got, again)
		}
	})
}
