package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/programtest"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

func dockerfile(t *testing.T) recipe {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	r, err := read(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheDockerfileIsRead(t *testing.T) {
	r := dockerfile(t)
	if r.to != "aod" || !slices.Equal(r.config.Entrypoint, []string{"/aod"}) || !slices.Equal(r.config.Cmd, []string{"serve"}) || r.config.User != "0:0" {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"AOD_DATA=/data", "AOD_LISTEN=0.0.0.0:7070", "AOD_TOKEN_FILE=/data/server/token"} {
		if !slices.Contains(r.config.Env, want) {
			t.Errorf("there is no %s in %q", want, r.config.Env)
		}
	}
	c := r.config.Healthcheck
	if c == nil || !slices.Equal(c.Test, []string{"CMD", "/aod", "units", "--quiet"}) || c.Interval != 10*time.Second || c.StartPeriod != 30*time.Second {
		t.Errorf("%+v", c)
	}
}

func TestWhatIsNotKnownIsRefused(t *testing.T) {
	const good = "FROM scratch\nCOPY bin/aod /aod\nENTRYPOINT [\"/aod\"]\n"
	if _, err := read(good); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", strings.Replace(good, "scratch", "debian", 1), good + "RUN true\n", good + "COPY a /b\n", good + "ENTRYPOINT /aod\n",
		good + "HEALTHCHECK --retries=3 CMD [\"/aod\"]\n", good + "HEALTHCHECK --interval=often CMD [\"/aod\"]\n", good + "HEALTHCHECK NONE\n",
	} {
		if r, err := read(bad); err == nil {
			t.Errorf("%q became %+v", bad, r)
		}
	}
}

func TestTheSameInputGivesTheSameImage(t *testing.T) {
	o := options{version: "v1", arch: "arm64", at: time.Unix(1_700_000_000, 0).UTC()}
	once, err := dockerfile(t).image([]byte("a program"), o)
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := dockerfile(t).image([]byte("a program"), o); err != nil || !bytes.Equal(once, twice) {
		t.Errorf("%d and %d bytes, %v", len(once), len(twice), err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(once))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for r := tar.NewReader(unzipped); ; files++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || !h.ModTime.Equal(o.at) {
			t.Fatalf("%+v, %v", h, err)
		}
	}
	if files != 3 {
		t.Errorf("it has %d files", files)
	}
}

// The engine takes the image, and its program starts.
func TestTheEngineLoadsTheImage(t *testing.T) {
	dockertest.Require(t)
	program, file := filepath.Join(t.TempDir(), "aod"), filepath.Join(t.TempDir(), "image.tar.gz")
	if err := programtest.Build(program); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	version := "test-" + filepath.Base(filepath.Dir(t.TempDir()))
	image, err := dockerfile(t).image(raw, options{version: strings.ToLower(version), arch: runtime.GOARCH, at: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, image, 0o600); err != nil {
		t.Fatal(err)
	}
	ref := "aod/server:" + strings.ToLower(version)
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", "-f", ref).Run() }) // it may not be there
	for _, args := range [][]string{{"load", "--input", file}, {"run", "--rm", "--network", "none", ref, "version"}} {
		out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "aod") {
			t.Fatalf("docker %v: %v\n%s", args, err, out)
		}
	}
}
