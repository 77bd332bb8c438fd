package docker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/initbin"
)

// durable is a run on the real engine that passes from process to process: each is a
// client of its own.
type durable struct {
	spec   runtime.Spec
	layout runtime.Layout
}

func newDurable(t *testing.T, script string) (*durable, *docker.Engine) {
	t.Helper()
	engine := localEngine(t)
	image, err := engine.Image(t.Context(), dockertest.Image)
	if err != nil {
		t.Fatal(err)
	}
	image.Entrypoint, image.Cmd = []string{"/bin/sh", "-c"}, []string{script}
	initFile, err := new(initbin.Installer).Install(t.TempDir(), image.Arch)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := runtime.NewLayoutWith(t.TempDir(), initFile, inputDir(t))
	if err != nil {
		t.Fatal(err)
	}
	d := &durable{layout: layout, spec: runtime.Spec{
		Run: "test-" + filepath.Base(layout.Dir) + "-" + time.Now().Format("150405.000000000"), Unit: "adopt", Owner: "test",
		Durable: true, Image: image, Network: "none", ReadOnly: true, Limits: runtime.DefaultLimits(), Labels: testLabels,
	}}
	t.Cleanup(func() {
		if err := runtime.RemoveAll(context.Background(), engine, d.spec.Run, d.spec.Owner); err != nil {
			t.Error(err)
		}
	})
	return d, engine
}

func inputDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("given\n"), 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// lines is a log that keeps what it is given.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) log() *runtime.Log {
	return runtime.NewLog(1<<20, func(line runtime.LogLine) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.text = append(l.text, line.Stream+": "+line.Text)
	})
}

func (l *lines) sorted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.text))
}

func (l *lines) has(line string) bool { return slices.Contains(l.sorted(), line) }

// start starts the sandbox in a process that goes away.
func (d *durable) start(t *testing.T, engine *docker.Engine, until string) (id string) {
	t.Helper()
	var seen lines
	s, err := runtime.Start(t.Context(), engine, d.spec, d.layout, seen.log())
	if err != nil {
		t.Fatal(err)
	}
	if !eventually(t.Context(), func() bool { return seen.has(until) }) {
		t.Fatalf("the log is %q", seen.sorted())
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(runtime.ErrDetach)
	if end, err := s.Wait(ctx); !errors.Is(err, runtime.ErrDetach) {
		t.Fatalf("%+v, %v", end, err)
	}
	s.Release()
	return s.ID()
}

// adopted is a sandbox in a process that finds it by its labels.
func (d *durable) adopted(t *testing.T, skip int) (*runtime.Sandbox, *lines) {
	t.Helper()
	engine := dockertest.Require(t)
	refs, err := runtime.Find(t.Context(), engine, d.spec.Run, d.spec.Owner)
	if err != nil || len(refs) != 1 {
		t.Fatalf("found %+v, %v", refs, err)
	}
	var seen lines
	log := seen.log()
	log.Skip(skip, 0)
	s, err := runtime.Adopt(t.Context(), engine, refs[0].ID, d.spec, runtime.OpenLayout(d.layout.Dir, d.layout.Input), log)
	if err != nil {
		t.Fatal(err)
	}
	return s, &seen
}
