package web

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestADocumentIsTakenApart(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][3]string{
		`{"message":"a\u001b[31mb\nc"}`:                          {"ab\nc", "", ""},
		`{"message":"a","files":["x","y"],"n":1.50}`:             {"a", "x,y", "{\n  \"n\": 1.50\n}"},
		`{"message":{"no":"text"},"files":7}`:                    {"", "", "{\n  \"files\": 7,\n  \"message\": {\n    \"no\": \"text\"\n  }\n}"},
		`null`:                                                   {"", "", ""},
		`{"message":"` + strings.Repeat("é", prettyBytes) + `"}`: {strings.Repeat("é", 10_000) + "… (and 45536 bytes more)\n… (64.0 KiB more: see the run)", "", ""},
	} {
		p := partsOf([]byte(raw))
		got := [3]string{p.text("message"), strings.Join(p.files([]fileField{{"files", "", true}}), ","), p.rest()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.60s: %s", raw, diff)
		}
	}
}
