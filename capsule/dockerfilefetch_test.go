package capsule

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/fuzzbound"
)

func TestWhatADockerfileFetchesByItself(t *testing.T) {
	for text, want := range map[string]string{
		"FROM debian\nADD http://127.0.0.1:9/x /x\n":                      "ADD \"http://127.0.0.1:9/x\" (Dockerfile:2)",
		"FROM debian\nadd HTTPS://example.org/x /x\n":                     "(Dockerfile:2)",
		"FROM debian\nADD --checksum=sha256:0 https://example.org/x .":    "https://example.org/x",
		"FROM debian\nADD --chown=1:1 a git@example.org:a/b.git /x":       "git@example.org",
		"FROM debian\nADD git://example.org/a /x":                         "git://",
		"FROM debian\nADD ssh://example.org/a /x":                         "ssh://",
		"FROM debian\nADD user@example.org:a/b /x":                        "user@",
		"FROM debian\nADD github.com/a/b /x":                              "github.com",
		"FROM debian\nADD [\"http://example.org/x\", \"/x\"]":             "http://",
		"FROM debian\nADD [\"\\u0068ttp://example.org/x\", \"/x\"]":       "http://",
		"FROM debian\nADD [\"\\u0068ttp://example.org/x\", \"/x\"] y":     "ADD",
		"FROM debian\nADD ht\"tp\"://example.org/x /x":                    "ADD",
		"FROM debian\nADD \\\n  # why\n\n  http://example.org/x /x":       "(Dockerfile:2)",
		"FROM debian\nAD\\\nD http://example.org/x /x":                    "(Dockerfile:2)",
		"# escape=`\nFROM debian\nA`\nDD http://example.org/x /x":         "(Dockerfile:3)",
		"FROM debian\nONBUILD ADD http://example.org/x /x":                "http://",
		"FROM debian\nONBUILD \\\n ADD \\\n http://example.org/x /x":      "http://",
		"FROM debian\nARG U=http://example.org/x\nADD $U /x":              "$U",
		"FROM debian\nADD ${U}/x /x":                                      "${U}/x",
		"FROM debian\nADD a$U /x":                                         "a$U",
		"FROM debian\nRUN echo \\\\\nADD http://example.org/x /x":         "(Dockerfile:3)",
		"FROM debian\nRUN echo \"a <<X\"\nADD http://e/x /x\nRUN :\\\nX":  "(Dockerfile:3)",
		"FROM debian\nRUN <<X\nADD http://example.org/x /x\nX":            "(Dockerfile:3)",
		"\ufeff# syntax=evil/frontend\nFROM debian":                       "# syntax=evil/frontend (Dockerfile:1)",
		"#!/bin/x\n#SYNTAX = evil.example/docker/dockerfile\nFROM x":      "evil.example",
		"// syntax=evil/frontend\nFROM debian":                            "evil/frontend",
		"#syntax=docker/dockerfile-upstream:master\nFROM debian":          "docker/dockerfile-upstream",
		"{\"syntax\": \"evil/frontend\"}":                                 "JSON",
		"FROM debian\nADD " + strings.Repeat("\\\n", 200) + "http://e /x": "more than 100 lines",
	} {
		if got := fetches(text); got == "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{
		"", "FROM debian\nADD . /x\nADD a b --c/ /x\n", "FROM debian\nADD --chown=$UID:0 files/*.txt $HOME/\n",
		"FROM debian\nADD ./$NAME.tar /x", "FROM debian\nADD [\"a b\", \"/x\"]", "# syntax=docker/dockerfile:1.7\nFROM debian",
		"# syntax=docker.io/docker/dockerfile@sha256:00\nFROM debian", "FROM debian\nRUN curl http://example.org",
		"FROM debian\nCOPY . /x\n# ADD http://example.org/x /x", "FROM debian\nADD <<EOF /x\nhello\nEOF", "FROM debian\nADDED http://x",
		"FROM debian\nADD <<\"EOF\" /x\nhello\nEOF", "# a word\n\nFROM debian\n# syntax=evil\n",
	} {
		if got := fetches(text); got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestAHostileDockerfileIsReadQuickly(t *testing.T) {
	for _, line := range []string{"ADD \\\n", "A\\\n", "ONBUILD\\\n", "#\n", "\n", "ADD x\\\n#\n"} {
		text := strings.Repeat(line, 1<<20/len(line))
		began := time.Now()
		_ = fetches(text)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%q: %v", line, took)
		}
	}
}

// Whatever stands around it, an ADD of an address on a line of its own is found.
func FuzzFetches(f *testing.F) {
	f.Add("FROM a\nRUN <<X", "X\nCMD c \\\n")
	f.Add("# escape=`\nRUN `", "ADD a b")
	f.Add("FROM a\nRUN \\\\", "\\")
	fuzzbound.Run(f, func(t *testing.T, before, after string) {
		if fetches(before+"\nADD http://127.0.0.1/ /x\n"+after) == "" {
			t.Errorf("%q, %q", before, after)
		}
	})
}
