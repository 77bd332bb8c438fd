package strictyaml

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestParse(t *testing.T) {
	doc, findings := Parse("a.yaml", []byte("a: 1\nb: [x, 1.5, true, null]\nc:\n  d: 2026-01-01\n"))
	want := map[string]any{"a": int64(1), "b": []any{"x", 1.5, true, nil}, "c": map[string]any{"d": "2026-01-01"}}
	if diff := cmp.Diff(want, doc.Value); diff != "" || findings != nil {
		t.Errorf("%v %s", findings, diff)
	}
	for pointer, line := range map[string]int{"": 1, "/a": 1, "/b/2": 2, "/c/d": 4, "/c/nothing": 3, "/b/9": 2} {
		if got := doc.LineAt(pointer); got != line {
			t.Errorf("%s is in line %d, not %d", pointer, got, line)
		}
	}
}

func TestAnEmptyFileIsADocumentOfNothing(t *testing.T) {
	doc, findings := Parse("a.yaml", []byte("# nothing\n"))
	if doc == nil || doc.Value != nil || doc.LineAt("/a") != 0 || findings != nil {
		t.Errorf("%+v %v", doc, findings)
	}
}

func TestWhatIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                                "a.yaml:1: it isn't YAML",
		"a: 1\n---\nb: 2\n":                   "a.yaml:2: it holds more than one document",
		"a: 1\nb: 2\na: 3\n":                  `a.yaml:3: the key "a" stands twice, first in line 1`,
		"1: x\n":                              "a.yaml:1: a key must be a text",
		"b: &x {c: 1}\na:\n  <<: *x\n":        "a.yaml:3: merge keys (<<) are not supported",
		"a: .inf\n":                           "a.yaml:1: \".inf\" is not a number that JSON can hold",
		"a: !t x\n":                           "a.yaml:1: the tag \"!t\" is not supported",
		"a: " + strings.Repeat("[", 40):       "a.yaml:1: it isn't YAML",
		"a: " + deep(40) + "\n":               "a.yaml:1: it is nested more than 32 deep",
		strings.Repeat("- 1\n", maxNodes+1):   "it holds more than 10000 values",
		strings.Repeat("k", maxKey+1) + ": 1": "a.yaml:1: a key is longer than 128 bytes",
	} {
		_, findings := Parse("a.yaml", []byte(text))
		if len(findings) == 0 || !strings.Contains(findings[0].Where()+": "+findings[0].Message, want) {
			t.Errorf("%.30q: %v, want %s", text, findings, want)
		}
	}
}

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func FuzzParse(f *testing.F) {
	f.Add("a: [1, x]\n")
	f.Add("a: &x [*x]\n")
	fuzzbound.Run(f, func(t *testing.T, text string) {
		doc, findings := Parse("a.yaml", []byte(text))
		if doc == nil && len(findings) == 0 {
			t.Error("neither a document nor a finding")
		}
		for _, finding := range findings {
			if finding.File != "a.yaml" || finding.Line < 1 || finding.Message == "" {
				t.Errorf("%+v", finding)
			}
		}
	})
}
