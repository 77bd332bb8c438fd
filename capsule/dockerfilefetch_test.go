package capsule

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestWhatADockerfileFetchesByItself(t *testing.T) {
	for text, want := range map[string]string{
		"FROM debian\nADD http://127.0.0.1:9/x /x\n":                              "ADD \"http://127.0.0.1:9/x\" (Dockerfile:2)",
		"FROM debian\nadd HTTPS://example.org/x /x\n":                             "(Dockerfile:2)",
		"FROM debian\nADD --checksum=sha256:0 https://example.org/x .":            "https://example.org/x",
		"FROM debian\nADD --chown=1:1 a git@example.org:a/b.git /x":               "git@example.org",
		"FROM debian\nADD git://example.org/a /x":                                 "git://",
		"FROM debian\nADD ssh://example.org/a /x":                                 "ssh://",
		"FROM debian\nADD user@example.org:a/b /x":                                "user@",
		"FROM debian\nADD github.com/a/b /x":                                      "github.com",
		"FROM debian\nADD [\"http://example.org/x\", \"/x\"]":                     "http://",
		"FROM debian\nADD [\"\\u0068ttp://example.org/x\", \"/x\"]":               "http://",
		"FROM debian\nADD [\"\\u0068ttp://example.org/x\", \"/x\"] y":             "ADD",
		"FROM debian\nADD ht\"tp\"://example.org/x /x":                            "ADD",
		"FROM debian\nADD \\\n  # why\n\n  http://example.org/x /x":               "(Dockerfile:2)",
		"FROM debian\nAD\\\nD http://example.org/x /x":                            "(Dockerfile:2)",
		"# escape=`\nFROM debian\nA`\nDD http://example.org/x /x":                 "(Dockerfile:3)",
		"FROM debian\nONBUILD ADD http://example.org/x /x":                        "http://",
		"FROM debian\nONBUILD \\\n ADD \\\n http://example.org/x /x":              "http://",
		"FROM debian\nARG U=http://example.org/x\nADD $U /x":                      "$U",
		"FROM debian\nADD ${U}/x /x":                                              "${U}/x",
		"FROM debian\nADD a$U /x":                                                 "a$U",
		"FROM debian\nRUN echo \\\\\nADD http://example.org/x /x":                 "(Dockerfile:3)",
		"FROM debian\nRUN echo \"a <<X\"\nADD http://e/x /x\nRUN :\\\nX":          "(Dockerfile:3)",
		"FROM debian\nRUN <<X\nADD http://example.org/x /x\nX":                    "(Dockerfile:3)",
		"\ufeff# syntax=evil/frontend\nFROM debian":                               "# syntax=evil/frontend (Dockerfile:1)",
		"#!/bin/x\n#SYNTAX = evil.example/docker/dockerfile\nFROM x":              "evil.example",
		"// syntax=evil/frontend\nFROM debian":                                    "evil/frontend",
		"#syntax=docker/dockerfile-upstream:master\nFROM debian":                  "docker/dockerfile-upstream",
		"{\"syntax\": \"evil/frontend\"}":                                         "JSON",
		"FROM debian\nCOPY --from=127.0.0.1:9/x /a /b":                            "COPY from \"127.0.0.1:9/x\" (Dockerfile:2)",
		"FROM debian\nCOPY --chown=1 --from=10.0.0.1/x:1 /a /b":                   "10.0.0.1/x:1",
		"FROM debian\nCOPY --from=registry.example:5000/x /a /b":                  "registry.example:5000",
		"FROM debian\nCOPY --from=localhost/x /a /b":                              "localhost/x",
		"FROM debian\nCOPY --from=[::1]:5000/x /a /b":                             "[::1]",
		"FROM debian\nCOPY --from=127.1/x /a /b":                                  "127.1/x",
		"FROM debian\nCOPY --from=METADATA/x /a /b":                               "METADATA",
		"FROM debian\nARG I=127.0.0.1:9/x\nCOPY --from=$I /a /b":                  "127.0.0.1:9/x",
		"FROM debian\nCOPY --from=${I} /a /b":                                     "isn't known",
		"FROM debian\nCOPY --fr\"om\"='127.0.0.1:9/x' /a /b":                      "127.0.0.1:9/x",
		"FROM debian\nCO\\\nPY \\\n  # why\n --from=127.0.0.1:9/x /a /b":          "(Dockerfile:2)",
		"FROM debian\nONBUILD COPY --from=127.0.0.1:9/x /a /b":                    "127.0.0.1:9/x",
		"FROM debian\nCOPY " + strings.Repeat("\\\n", 200) + "--from=x /":         "more than 100 lines",
		"FROM debian\nRUN --mount=type=bind,from=127.0.0.1:9/x ls":                "RUN from \"127.0.0.1:9/x\" (Dockerfile:2)",
		"FROM debian\nRUN --mount='type=bind,target=/a b,\"FROM=10.0.0.1/x\"' ls": "10.0.0.1/x",
		"FROM debian\nRUN --network=none --mo\\unt=from=localhost:1/x ls":         "localhost:1/x",
		"FROM debian\nADD " + strings.Repeat("\\\n", 200) + "http://e /x":         "more than 100 lines",
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
		"FROM debian\nCOPY --from=build /a /b\nCOPY --from=0 /a /b\nCOPY --from=ghcr.io/a/b:1 /a /b\nCOPY --from=a/b /a /b\nCOPY --from=busybox:1.36 /a /b",
		"FROM debian\nRUN --mount=type=cache,target=/x,from=build apt-get \\\n" + strings.Repeat("a \\\n", 200) + "b",
		"FROM debian\nRUN curl --from=127.0.0.1:9/x\nCOPY --chown=1:1 127.0.0.1:9/x /", "FROM debian\nRUN --mount=type=secret,id=x cat",
		"FROM debian\nADD <<\"EOF\" /x\nhello\nEOF", "# a word\n\nFROM debian\n# syntax=evil\n",
	} {
		if got := fetches(text); got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestAHostileDockerfileIsReadQuickly(t *testing.T) {
	for _, line := range []string{"ADD \\\n", "A\\\n", "ONBUILD\\\n", "RUN \\\n", "COPY --from=x\\\n", "RUN --mount=from=$A,from=$A\\\n", "#\n", "\n", "ADD x\\\n#\n"} {
		text := strings.Repeat(line, 1<<20/len(line))
		began := time.Now()
		_ = fetches(text)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%q: %v", line, took)
		}
	}
}

// Whatever stands around it, an ADD of an address and a COPY from one on a line of its own are found.
func FuzzFetches(f *testing.F) {
	f.Add("FROM a\nRUN <<X", "X\nCMD c \\\n")
	f.Add("# escape=`\nRUN `", "ADD a b")
	f.Add("FROM a\nRUN \\\\", "\\")
	fuzzbound.Run(f, func(t *testing.T, before, after string) {
		if fetches(before+"\nADD http://127.0.0.1/ /x\n"+after) == "" {
			t.Errorf("%q, %q", before, after)
		}
		if fetches(before+"\nCOPY --from=127.0.0.1:9/x /a /x\n"+after) == "" {
			t.Errorf("COPY: %q, %q", before, after)
		}
	})
}
