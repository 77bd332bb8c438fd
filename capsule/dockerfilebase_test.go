package capsule

import (
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestWhatABuildMayBeginUpon(t *testing.T) {
	for text, want := range map[string]string{
		"FROM debian\nFROM --platform=linux/amd64 a/b:1 AS x\nfrom x": "debian a/b:1 x",
		"FROM \\\n  # why\n  debian":                                  "debian",
		"FR\\\nOM debian":                                             "debian",
		"# escape=`\nFROM `\ndebian":                                  "debian",
		"FROM \"debian\"":                                             "debian",
		"FROM scratch":                                                "",
		"ARG B=debian\nFROM $B":                                       "debian",
		"ARG B=debian\nARG B=evil V=1\nFROM ${B}:$V":                  "debian:1 evil:1",
		"ARG V=1\nARG B=debian:$V\nFROM ${B:-evil}":                   "debian:1 evil",
		"FROM ${B-debian}":                                            "debian",
		"FROM debian\nRUN <<X\nFROM evil\nX":                          "debian evil",
		"FROM debian\nRUN psql -c \"select\\\nFROM users where 1\"":   "debian",
		"FROM ghcr.io/a/b:1\nFROM registry.example/x@sha256:0":        "ghcr.io/a/b:1 registry.example/x@sha256:0",
		"FROM localhost:5000\nFROM a/b":                               "localhost:5000 a/b",
		"FROM 127.0.0.1:9/x":                                          "?",
		"FROM http://127.0.0.1/x":                                     "?",
		"FROM registry.example:5000/x":                                "?",
		"FROM localhost/x AS y":                                       "?",
		"FROM 10.0.0.1/x@sha256:0":                                    "?",
		"ARG B=127.0.0.1:9/x\nFROM $B":                                "?",
		"FROM ${B:-[::1]:9/x}":                                        "?",
		"FROM $B":                                                     "?",
		"FROM ${B:+x}":                                                "?",
		"ARG A=$B\nARG B=$A\nFROM $A":                                 "?",
		"FROM de\\bian":                                               "?",
		"ARG A=$A$A$A$A\nFROM $A$A$A$A":                               "?",
	} {
		bases, unclear := begins(text)
		if unclear != "" {
			bases = []string{"?"}
		}
		if got := strings.Join(bases, " "); got != want {
			t.Errorf("%q: %q, %q, want %q", text, got, unclear, want)
		}
	}
}

func TestATriggerThatFetches(t *testing.T) {
	for trigger, fetches := range map[string]bool{
		"COPY --from=127.0.0.1:9/x /a /x": true, "RUN --mount=from=$X ls": true, "COPY --from=debian /a /x": false,
		"ADD http://127.0.0.1/x /x": true, "add $U /x": true, "ADD . /x": false, "RUN curl http://127.0.0.1": false, "COPY http:/x /x": false,
	} {
		if got := TriggerFetches(trigger); (got != "") != fetches {
			t.Errorf("%q: %q", trigger, got)
		}
	}
}

// Whatever stands around it, a FROM on a line of its own is found.
func FuzzBegins(f *testing.F) {
	f.Add("ARG A=$A\nFROM ${A:-$A}", "X\nCMD c \\\n")
	f.Add("# escape=`\nFROM `", "FROM a")
	fuzzbound.Run(f, func(t *testing.T, before, after string) {
		bases, unclear := begins(before + "\nFROM evil/x\n" + after)
		if unclear == "" && !slices.Contains(bases, "evil/x") {
			t.Errorf("%q, %q: %q", before, after, bases)
		}
	})
}
