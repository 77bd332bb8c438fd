package capsule

import (
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestParseDockerfile(t *testing.T) {
	cases := []struct {
		name   string
		text   string
		base   bool
		starts bool
	}{
		{"a plain base", "FROM aod/base\n", true, false},
		{"a base with a tag", "FROM aod/base:1.2", true, false},
		{"a base with a digest", "FROM aod/base@sha256:00", true, false},
		{"in lower case, with a platform and a stage", "from --platform=linux/amd64 aod/base:x as app", true, false},
		{"a base in the second stage", "FROM debian\nFROM aod/base", true, false},
		{"another image whose name begins alike", "FROM aod/base-extra", false, false},
		{"an image that is an argument", "ARG IMAGE=aod/base\nFROM $IMAGE", false, false},
		{"a base that stands in a comment", "# FROM aod/base\nFROM debian", false, false},
		{"a base that stands in a continued RUN", "FROM debian\nRUN echo \\\n  FROM aod/base", false, false},
		{"a FROM over two lines, with a comment between", "FROM \\\n# why\n aod/base", true, false},
		{"another escape character", "# escape=`\nFROM `\n aod/base", true, false},
		{"CMD in the last stage", "FROM debian\nCMD [\"/x\"]", false, true},
		{"ENTRYPOINT in the last stage", "FROM debian\nentrypoint /x", false, true},
		{"CMD in an earlier stage only", "FROM debian AS build\nCMD x\nFROM debian", false, false},
		{"CMD in the stage that the last one builds on", "FROM debian AS Build\nCMD x\nFROM build", false, true},
		{"ONBUILD CMD isn't one", "FROM debian\nONBUILD CMD x", false, false},
		{"CMD within a here-document isn't one", "FROM debian\nRUN <<EOT\nCMD x\nEOT\n", false, false},
		{"CMD after a here-document is one", "FROM debian\nRUN <<-'EOT' cat\n\tx\n\tEOT\nCMD x", false, true},
		{"Windows' line ends", "FROM aod/base\r\nCMD x\r\n", true, true},
		{"nothing at all", "", false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := parseDockerfile([]byte(c.text))
			if got := (&Capsule{dockerfile: d}).UsesBase(); got != c.base {
				t.Errorf("UsesBase = %v, want %v", got, c.base)
			}
			if d.starts != c.starts {
				t.Errorf("starts = %v, want %v", d.starts, c.starts)
			}
		})
	}
}

func FuzzParseDockerfile(f *testing.F) {
	f.Add("FROM a AS b\nRUN <<X\nX\nCMD c \\\n")
	f.Add("# escape=`\n`\n\\")
	fuzzbound.Run(f, func(_ *testing.T, text string) { parseDockerfile([]byte(text)) })
}
