// Package integration_test starts the server's image as its users do, on the real engine,
// and drives it from outside over HTTP: what is proved here is what the parts can't prove
// by themselves, above all that a server in a container finds its way to the engine's host.
//
// main_test.go builds the image, server_test.go starts it, drive_test.go asks it for runs,
// and run_test.go says what must come of them; left_test.go proves that nothing is left.
//
// Nothing is pulled: the image is FROM scratch, and its capsules are built from images
// that the engine has.
package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/build" //nolint:depguard // testcontainers takes it
	"github.com/google/uuid"
	"github.com/testcontainers/testcontainers-go"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/programtest"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

const (
	testLabel  = "aod.test"
	testName   = "integration"
	repository = "aod/server-integration"
	// maxImage is what the image may take, in bytes. The page took 1.5 MB of it, teams with people and webhooks 1 MB,
	// workers and Swarm 0.7 MB.
	maxImage = 53 << 20
)

func TestMain(m *testing.M) {
	// The reaper would be an image from a registry. What is made here is removed here.
	os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	if _, err := os.Stat("/.dockerenv"); err == nil {
		// Some machines have that file and aren't containers of the engine that they use.
		setDefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	}
	code := m.Run()
	for _, step := range slices.Backward(undo) {
		if err := step(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// undo removes what the tests share, the last first.
var undo []func() error

func setDefault(name, value string) {
	if os.Getenv(name) == "" {
		os.Setenv(name, value)
	}
}

// testRun tells what this copy of the tests makes from what another one does.
var testRun = unique("run")

// unique returns a name that no other test has.
func unique(what string) string { return "aod-" + testName + "-" + what + "-" + uuid.NewString()[:8] }

// contextDir is a build context as `make image` has it: the repository's Dockerfile and
// its .dockerignore, and the program as it is in the tree. It is made once.
var contextDir = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "aod-integration-"); err != nil {
		return "", err
	}
	undo = append(undo, func() error { return os.RemoveAll(dir) })
	for _, name := range []string{"Dockerfile", ".dockerignore", "docker-compose.yml"} {
		if err := copyFile(filepath.Join("../../..", name), filepath.Join(dir, name)); err != nil {
			return dir, err
		}
	}
	for _, name := range []string{"hello", "csv-report"} {
		from := os.DirFS(filepath.Join("../../../examples/capsules", name))
		if err := os.CopyFS(filepath.Join(dir, "examples/capsules", name), from); err != nil {
			return dir, err
		}
	}
	return dir, programtest.Build(filepath.Join(dir, "bin/aod"), "-ldflags", "-s -w")
})

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// serverImage builds the image and returns its name, once.
var serverImage = sync.OnceValues(func() (string, error) {
	dir, err := contextDir()
	if err != nil {
		return "", err
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", err
	}
	defer provider.Close()
	undo = append(undo, removeImages)
	request := testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{
		Context: dir, Repo: repository, Tag: unique("image"),
		BuildOptionsModifier: uncached,
	}, Labels: map[string]string{testLabel: testRun}}
	return provider.BuildImage(context.Background(), &request)
})

// uncached keeps the classic builder from the search of its cache, which fails where another
// package's test removes an image at that moment.
func uncached(opts *build.ImageBuildOptions) { opts.NoCache = true }

// buildServer skips the test where there is no engine, and returns the image's name.
func buildServer(t *testing.T) (*docker.Engine, string) {
	t.Helper()
	engine := dockertest.Require(t)
	if inits, err := filepath.Glob("../../../runtime/initbin/bin/aod-init-linux-*"); err != nil || len(inits) == 0 {
		t.Fatal("the sandbox's init isn't built: run `make init`")
	}
	image, err := serverImage()
	if err != nil {
		t.Fatal(err)
	}
	return engine, image
}

func removeImages() error {
	engine, err := docker.New(docker.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	var errs []error
	for _, labels := range []map[string]string{{testLabel: testRun}, {runtime.LabelUnit: probeName}} {
		images, err := engine.ImagesByLabel(context.Background(), labels)
		errs = append(errs, err)
		for _, image := range images {
			for _, tag := range image.Tags {
				err := engine.RemoveImage(context.Background(), tag)
				if !fault.Is(err, fault.Conflict) { // another copy of the test has it, and removes it then
					errs = append(errs, err)
				}
			}
		}
	}
	return errors.Join(errs...)
}

func TestTheImageIsSmallAndHoldsNothingButTheProgram(t *testing.T) {
	engine, name := buildServer(t)
	image, err := engine.Image(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := contextDir()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Stat(filepath.Join(dir, "bin/aod"))
	if err != nil {
		t.Fatal(err)
	}
	if image.SizeBytes > maxImage || image.SizeBytes != program.Size() {
		t.Errorf("the image has %d bytes, the program %d", image.SizeBytes, program.Size())
	}
}
