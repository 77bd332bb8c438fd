package capsule

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestInstructionsReadAContextThatLiesBelow(t *testing.T) {
	for written, want := range map[string]string{
		"COPY . /c":                           "COPY context/./. /c",
		"copy --chown=1:1 a b* /c/":           "copy --chown=1:1 context/./a context/./b* /c/",
		"COPY /src/ ./x /c/":                  "COPY context/./src/ context/././x /c/",
		"COPY ../../Dockerfile /c":            "COPY context/./Dockerfile /c",
		`COPY ["a b", "/c"]`:                  `COPY ["context/./a b","/c"]`,
		"COPY a \\\n  # why\n  b \\\n  /c/":   "COPY context/./a context/./b /c/",
		"COPY --from=build /x /y":             "COPY --from=build /x /y",
		"COPY $DIR/../x /c":                   "COPY context/./$DIR/../x /c",
		"COPY <<EOF /c\nCOPY . /d\nEOF":       "COPY <<EOF /c\nCOPY . /d\nEOF",
		"ADD https://example.org/x a.tar /c/": "ADD https://example.org/x context/./a.tar /c/",
		"RUN --mount=target=/src \\\n  make":  "RUN --mount=target=/src,source=context/. \\\n  make",
		"RUN --mount=type=bind,src=a,dst=/a --mount=type=cache,target=/b x": "RUN --mount=type=bind,src=context/./a,dst=/a --mount=type=cache,target=/b x",
		"RUN --mount=from=build,source=/a,target=/a x":                      "RUN --mount=from=build,source=/a,target=/a x",
		"FROM a\n# COPY . /c\nRUN echo COPY . \\\n  COPY . /c\nCMD [\"x\"]": "FROM a\n# COPY . /c\nRUN echo COPY . \\\n  COPY . /c\nCMD [\"x\"]",
		"ONBUILD COPY . /c":            "ONBUILD COPY . /c",
		"# escape=`\nCOPY a `\n b /c/": "# escape=`\nCOPY context/./a context/./b /c/",
		"COPY":                         "COPY",
	} {
		got, ok := readsBelow(written)
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%q: %v %s", written, ok, diff)
		}
	}
	for _, foreign := range []string{"# syntax=registry.example/other\nCOPY . /c", `{"a": 1}`} {
		if _, ok := readsBelow(foreign); ok {
			t.Errorf("%q was moved", foreign)
		}
	}
	if got := AsWritten("[2/3] COPY context/./. /c"); got != "[2/3] COPY . /c" {
		t.Error(got)
	}
}

func FuzzADockerfileThatReadsBelowHasTheSameInstructions(f *testing.F) {
	f.Add("FROM a\nCOPY . /c\nRUN --mount=target=/x \\\n y\nCOPY <<E /c\nx\nE\n")
	fuzzbound.Run(f, func(t *testing.T, text string) {
		moved, ok := readsBelow(text)
		if !ok {
			return
		}
		before, after := instructions(text), instructions(moved)
		same := func(a, b []string) bool { return a[0] == b[0] }
		if !slices.EqualFunc(before, after, same) {
			t.Errorf("%q became %q", text, moved)
		}
	})
}

func TestABuilderPutsIntoNoImageWhatIsLeftOut(t *testing.T) {
	for ignore, want := range map[string][]string{
		"Dockerfile\n.dockerignore": {"Dockerfile", "context/./src/", "context/./src/a"},
		"*\n!src":                   {"Dockerfile", "context/./src/", "context/./src/a"},
		"Dockerfile*":               {"context/./.dockerignore", "Dockerfile", "context/./src/", "context/./src/a"},
		".dockerignore":             {"Dockerfile", "src/", "src/a"},
		".*\nsrc/a":                 {"Dockerfile", "src/"},
		"src":                       {".dockerignore", "Dockerfile"},
	} {
		x := contextOf(t, newDirectory(t, map[string]string{"Dockerfile": "FROM x\nCOPY . /c\n", ".dockerignore": ignore, "src/a": "A"}))
		var out bytes.Buffer
		must(t, x.WriteBuild(&out))
		var got []string
		for r := tar.NewReader(&out); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			raw, err := io.ReadAll(r)
			must(t, err)
			if moved := slices.Contains(want, "context/./src/"); h.Name == "Dockerfile" && strings.Contains(string(raw), "COPY context/./. /c") != moved {
				t.Errorf("%q: the Dockerfile is %q", ignore, raw)
			}
			got = append(got, h.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" || x.Hides() != (ignore != "src") {
			t.Errorf("%q: %v %s", ignore, x.Hides(), diff)
		}
	}
}
