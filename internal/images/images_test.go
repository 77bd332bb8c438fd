package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBaseContext(t *testing.T) {
	t.Run("holds the Dockerfile and the Python package, and nothing else", func(t *testing.T) {
		want := []string{
			"Dockerfile", "aod/__init__.py", "aod/address.py", "aod/again.py", "aod/api.py", "aod/bridge.py",
			"aod/calls.py", "aod/code.py", "aod/codechild.py", "aod/contract.py", "aod/dialects.py", "aod/errors.py", "aod/files.py", "aod/flow.py",
			"aod/flowfile.py", "aod/flownodes.py", "aod/flowpicture.py", "aod/flowscope.py", "aod/flowunits.py",
			"aod/flowwalk.py", "aod/formats.py", "aod/invocation.py", "aod/judge.py", "aod/judged.py", "aod/loop.py",
			"aod/mcpchild.py", "aod/mcpclient.py", "aod/mcphttp.py", "aod/mcplines.py", "aod/memory.py", "aod/model.py",
			"aod/outgoing.py", "aod/paths.py", "aod/patterns.py", "aod/people.py", "aod/result.py", "aod/schema.py",
			"aod/served.py", "aod/servers.py", "aod/settings.py", "aod/skills.py", "aod/thoughts.py", "aod/told.py", "aod/toolbox.py", "aod/tools.py",
			"aod/watch.py",
		}
		if diff := cmp.Diff(want, names(t, writeContext(t))); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	})
	t.Run("is the same bytes every time", func(t *testing.T) {
		if !bytes.Equal(writeContext(t), writeContext(t)) {
			t.Error("two contexts differ")
		}
	})
	t.Run("reports a writer that fails", func(t *testing.T) {
		failure := errors.New("full")
		if err := WriteBaseContext(failingWriter{failure}); !errors.Is(err, failure) {
			t.Errorf("WriteBaseContext = %v, want %v", err, failure)
		}
	})
}

func TestBaseTag(t *testing.T) {
	t.Run("is the name and the beginning of the digest", func(t *testing.T) {
		if !regexp.MustCompile(`^aod/base:[0-9a-f]{16}$`).MatchString(BaseTag()) {
			t.Errorf("BaseTag = %q", BaseTag())
		}
		if !strings.HasPrefix(BaseDigest(), strings.TrimPrefix(BaseTag(), BaseName+":")) {
			t.Errorf("the tag %q is not of the digest %q", BaseTag(), BaseDigest())
		}
	})
	t.Run("stands on the image that BaseFrom names", func(t *testing.T) {
		if !bytes.HasPrefix(baseDockerfile, []byte("FROM "+BaseFrom+"\n")) {
			t.Errorf("the Dockerfile doesn't begin with FROM %s", BaseFrom)
		}
	})
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func writeContext(t *testing.T) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := WriteBaseContext(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// names lists the context and checks that nothing of this machine is in it.
func names(t *testing.T, context []byte) []string {
	t.Helper()
	var got []string
	archive := tar.NewReader(bytes.NewReader(context))
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.ModTime.Unix() != 0 || header.Uid != 0 || header.Uname != "" || header.Mode != 0o644 {
			t.Errorf("%s carries something of this machine: %+v", header.Name, header)
		}
		got = append(got, header.Name)
	}
}
