package capsule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTheImagesThatABuildNames(t *testing.T) {
	for text, want := range map[string]string{
		"FROM debian\nCMD x": "debian",
		"FROM a/b:1 AS x\nFROM --platform=linux/amd64 X\nCOPY --from=x /a /a\nCOPY --from=0 /a /a": "a/b:1",
		"FROM scratch\nCOPY --chown=1 --from=ghcr.io/a/b:1 /a /a\nCOPY --from=c:1 /a /a":           "ghcr.io/a/b:1 c:1",
		"FROM a\nRUN --mount=type=bind,from=tools:2,target=/x make\nRUN echo --from=no":            "a tools:2",
		"ARG V=1\nFROM a:$V\nFROM $UNKNOWN":                                                        "a:1",
		"FROM localhost:5000/a\nFROM a@sha256:0":                                                   "localhost:5000/a a@sha256:0",
		"FROM a\nRUN <<X\nFROM no\nX\nfrom A":                                                      "a A",
	} {
		if got := strings.Join(parseDockerfile([]byte(text)).images, " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var many strings.Builder
	for i := range 3 * mostImages {
		fmt.Fprintf(&many, "FROM a:%d\n", i)
	}
	if all := parseDockerfile([]byte(many.String())).images; len(all) != mostImages || !slices.Contains(all, "a:0") {
		t.Errorf("%d images", len(all))
	}
}
