package docker

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

// archiveOf is a tar of names and contents, one after the other.
func archiveOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var all bytes.Buffer
	archive := tar.NewWriter(&all)
	for i := 0; i < len(files); i += 2 {
		if err := archive.WriteHeader(&tar.Header{Name: files[i], Mode: 0o600, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

func TestOnlyTheImageThatIsWantedPasses(t *testing.T) {
	t.Parallel()
	one := func(tags string) []string {
		return []string{"l/layer.tar", "x", "manifest.json", `[{"RepoTags": ` + tags + `}]`}
	}
	for name, c := range map[string]struct {
		ref    string
		files  []string
		passes bool
	}{
		"it is the one":              {"a/b:1", one(`["a/b:1"]`), true},
		"a short name":               {"debian", one(`["docker.io/library/debian:latest"]`), true},
		"an id":                      {"sha256:ab", one(`null`), true},
		"an id with a name":          {"sha256:ab", one(`["a/b:1"]`), false},
		"another name":               {"a/b:1", one(`["a/c:1"]`), false},
		"two names":                  {"a/b:1", one(`["a/b:1", "aod/base:latest"]`), false},
		"no name":                    {"a/b:1", one(`null`), false},
		"two images":                 {"a/b:1", []string{"manifest.json", `[{"RepoTags": ["a/b:1"]}, {"RepoTags": ["a/b:1"]}]`}, false},
		"two manifests":              {"a/b:1", append(one(`["a/b:1"]`), "./manifest.json", `[]`), false},
		"a manifest by another path": {"a/b:1", append(one(`["a/b:1"]`), "link/manifest.json", `[]`), false},
		"no manifest":                {"a/b:1", []string{"repositories", `{"a/b": {"1": "x"}}`}, false},
		"no JSON":                    {"a/b:1", []string{"manifest.json", "{"}, false},
	} {
		var passed bytes.Buffer
		err := passImage(c.ref, bytes.NewReader(archiveOf(t, c.files...)), &passed)
		if c.passes && err != nil || !c.passes && !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIndexesOfOtherFormsDoNotPass(t *testing.T) {
	t.Parallel()
	raw := archiveOf(t, "oci-layout", "a", "index.json", "b", "manifest.json", `[{"RepoTags": ["a:1"]}]`, "./repositories", "c", "blobs/x", "d")
	var passed bytes.Buffer
	if err := passImage("a:1", bytes.NewReader(raw), &passed); err != nil {
		t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(&passed); ; {
		head, err := archive.Next()
		if err != nil {
			break
		}
		names = append(names, head.Name)
	}
	if got := strings.Join(names, " "); got != "manifest.json blobs/x" {
		t.Error(got)
	}
	if err := passImage("a:1", bytes.NewReader(raw[:700]), io.Discard); err == nil {
		t.Error("half an archive passes")
	}
}
