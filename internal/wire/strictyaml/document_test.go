package strictyaml

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScalarsBecomeWhatJSONHolds(t *testing.T) {
	for text, want := range map[string]any{
		"a": "a", `"1"`: "1", "'true'": "true", "!!str 5": "5", "yes": "yes", "2026-01-01": "2026-01-01", "2026-01-01T00:00:00Z": "2026-01-01T00:00:00Z", "|\n  x\n  y": "x\ny\n", ">-\n  x\n  y": "x y",
		"true": true, "False": false, "~": nil, "null": nil, "": nil, "1": int64(1), "-0": int64(0),
		"9223372036854775807": int64(math.MaxInt64), "18446744073709551615": uint64(math.MaxUint64), "-9223372036854775808": int64(math.MinInt64),
		"1.5": 1.5, "1e3": 1000.0, "-0.5": -0.5, "123456789012345678901234567890.0": 123456789012345678901234567890.0,
	} {
		doc, findings := Parse("a.yaml", []byte("v: "+text+"\n"))
		if diff := cmp.Diff(map[string]any{"v": want}, doc.Value); diff != "" || findings != nil {
			t.Errorf("%s: %v %s", text, findings, diff)
		}
	}
}

func TestWhatIsWrongWithAValue(t *testing.T) {
	for text, want := range map[string][]string{
		"v: .nan":                                    {`a.yaml:1: ".nan" is not a number that JSON can hold (write a finite number, or put it in quotes)`},
		"v: !!int x":                                 {`a.yaml:1: "x" is not a int (write a finite number, or put it in quotes)`},
		"v: !!binary aGk=":                           {`a.yaml:1: the tag "!!binary" is not supported (write a plain value)`},
		"v:\n  - !a x\n  - .inf\n  - 1":              {`a.yaml:2: the tag "!a" is not supported (write a plain value)`, `a.yaml:3: ".inf" is not a number that JSON can hold (write a finite number, or put it in quotes)`},
		"null: 1\ntrue: 2\n1.5: 3\n[a]: 4":           {"a.yaml:1: a key must be a text (put it in quotes)", "a.yaml:2: a key must be a text (put it in quotes)", "a.yaml:3: a key must be a text (put it in quotes)", "a.yaml:4: a key must be a text (put it in quotes)"},
		"a: 1\nb:\n  a: 2\n  a: 3\na: 4\na: 5":       {`a.yaml:4: the key "a" stands twice, first in line 3 (keep one of them)`, `a.yaml:5: the key "a" stands twice, first in line 1 (keep one of them)`, `a.yaml:6: the key "a" stands twice, first in line 1 (keep one of them)`},
		strings.Repeat("k", 200) + ": 1\nb: .inf":    {"a.yaml:1: a key is longer than 128 bytes", `a.yaml:2: ".inf" is not a number that JSON can hold (write a finite number, or put it in quotes)`},
		"a: " + deep(40) + "\nb: .inf\n":             {"a.yaml:1: it is nested more than 32 deep (write it shorter, and without aliases)"}, // and no word more
		"a: &x\n  b: *x\n":                           {"a.yaml:1: it is nested more than 32 deep (write it shorter, and without aliases)"},
		"a: \"\x1b[31m\": x":                         nil, // the syntax is broken
		"v: " + strings.Repeat(".inf1", 1) + "\n---": {"a.yaml:2: it holds more than one document (keep one, without --- between)"},
		"a:\n\t- b":                                  {"a.yaml:2: it isn't YAML: found character that cannot start any token (indent with spaces, and put a text that begins with @, % or ` in quotes)"},
	} {
		_, findings := Parse("a.yaml", []byte(text))
		var got []string
		for _, f := range findings {
			got = append(got, f.String())
		}
		if want == nil {
			if len(got) != 1 || !strings.Contains(got[0], "it isn't YAML") || strings.ContainsRune(got[0], 0x1b) {
				t.Errorf("%.40q: %q", text, got)
			}
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.40q: %s", text, diff)
		}
	}
}

func TestAFileAtItsLimits(t *testing.T) {
	billion := "a: &a [" + strings.TrimSuffix(strings.Repeat("x, ", 9), ", ") + "]\n"
	for i, name := range strings.Split("bcdefghi", "") {
		billion += name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat("*"+string("abcdefgh"[i])+", ", 9), ", ") + "]\n"
	}
	for text, says := range map[string]string{
		deep(maxDepth + 1):                  "",
		deep(maxDepth + 2):                  "nested more than 32 deep",
		strings.Repeat("- 1\n", maxNodes-1): "", // and the list itself
		strings.Repeat("- 1\n", maxNodes):   "more than 10000 values",
		strings.Repeat("k", maxKey) + ": 1": "",
		"a: &x [1, 2]\nb: *x\nc: [*x, *x]":  "",
		"a: &x " + deep(20) + "\nb: " + strings.Repeat("[", 20) + "*x" + strings.Repeat("]", 20): "nested more than 32 deep",
		billion: "more than 10000 values",
	} {
		doc, findings := Parse("a.yaml", []byte(text))
		if doc == nil || (len(findings) > 0) != (says != "") || len(findings) > 1 || says != "" && !strings.Contains(findings[0].Message, says) {
			t.Errorf("%.30q: %v, want %q", text, findings, says)
		}
	}
}

func TestTheLineOfAValue(t *testing.T) {
	text := "a/b: 1\nlist:\n  - x\n  -\n    deep: {c: 1,\n      \"~\": 2}\nref: &r\n  k: 1\nagain: *r\n"
	doc, findings := Parse("a.yaml", []byte(text))
	if findings != nil {
		t.Fatal(findings)
	}
	for pointer, want := range map[string]int{
		"": 1, "/a~1b": 1, "/list": 2, "/list/0": 3, "/list/1": 5, "/list/1/deep": 5, "/list/1/deep/~0": 6, "/again": 9, "/again/k": 8, // where it is written
		"/list/2": 2, "/list/-1": 2, "/list/x": 2, "/list/01": 5, "/a~1b/c": 1, "/none/at/all": 1, "/list/1/deep/c/d": 5,
	} {
		if got := doc.LineAt(pointer); got != want {
			t.Errorf("%s is in line %d, want %d", pointer, got, want)
		}
	}
	root, finding := ParseNode("a.yaml", []byte(text))
	if finding != nil {
		t.Fatal(finding)
	}
	part, findings := FromNode("a.yaml", root.Content[3])
	if findings != nil || part.LineAt("/1/deep") != 5 || part.LineAt("") != 3 || part.File != "a.yaml" {
		t.Errorf("%+v %v", part, findings)
	}
}
