package runtime_test

import (
	"archive/tar"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

func recipe(dockerfile string) runtime.Recipe {
	return runtime.Recipe{
		Name: "aod-capsule/x", Digest: "0123456789abcdef0123456789abcdef", Labels: map[string]string{"a": "b"}, AlsoTag: "aod-capsule/x:latest",
		WriteContext: func(w io.Writer) error {
			archive := tar.NewWriter(w)
			err := archive.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(dockerfile))})
			_, writeErr := io.WriteString(archive, dockerfile)
			return errors.Join(err, writeErr, archive.Close())
		},
	}
}

func TestATagHoldsADigestOfTheContent(t *testing.T) {
	for digest, want := range map[string]string{
		"0123456789abcdef0123456789abcdef": "x:0123456789abcdef",
		"0123456789abcdef":                 "x:0123456789abcdef",
		"0123":                             "x:0123",
	} {
		if got := (runtime.Recipe{Name: "x", Digest: digest}).Tag(); got != want {
			t.Errorf("%s: %s, want %s", digest, got, want)
		}
	}
}

func TestAnImageIsBuilt(t *testing.T) {
	engine := enginetest.NewFake(nil)
	engine.AddImage(runtime.Image{ID: "sha256:base", Tags: []string{"base:latest"}})
	r := recipe("FROM base\nRUN true\n")
	var events []runtime.BuildEvent
	image, err := runtime.BuildImage(t.Context(), engine, r, func(e runtime.BuildEvent) { events = append(events, e) })
	if err != nil || len(events) == 0 {
		t.Fatalf("%+v, %d events, %v", image, len(events), err)
	}
	if diff := cmp.Diff([]string{r.Tag(), r.AlsoTag}, image.Tags); diff != "" || image.Labels["a"] != "b" {
		t.Errorf("labels %v, tags: %s", image.Labels, diff)
	}
}

func TestABuildThatFails(t *testing.T) {
	cases := []struct {
		name       string
		dockerfile string
		broken     string // an engine call
		kind       fault.Kind
		calls      string
	}{
		{"an engine that can't build", "FROM base", "Build", fault.Unavailable, "Build"},
		{"a base that isn't there", "FROM nowhere", "", fault.Build, "Build"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			b.AddImage(runtime.Image{ID: "sha256:base", Tags: []string{"base:latest"}})
			b.breakWith(errAway, c.broken)
			image, err := runtime.BuildImage(t.Context(), b, recipe(c.dockerfile), nil)
			if !fault.Is(err, c.kind) || image.ID != "" {
				t.Errorf("%+v, %v", image, err)
			}
			if calls := strings.Join(b.Calls(), " "); calls != c.calls {
				t.Errorf("calls %s", calls)
			}
		})
	}
}
