// Package basetest builds the base image for tests and runs programs in it.
package basetest

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/agent-on-demand/aod/internal/images"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// patience is how long a build or a run may take, on however busy a machine.
const patience = 10 * time.Minute

// Base is a freshly built base image on the real engine.
type Base struct {
	Image  runtime.Image
	engine *docker.Engine
	labels map[string]string
}

// Build builds the base image under a name of the test's own, which is removed at
// the end of the test; the layers stay in the engine's cache. The owner is the value
// of the label aod.test on everything that is made. Without an engine it skips the
// test, as dockertest.Require does.
func Build(t *testing.T, owner string) *Base {
	t.Helper()
	b := &Base{engine: dockertest.Require(t), labels: map[string]string{"aod.test": owner}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tag := "aod-test/base:" + uuid.NewString()
	t.Cleanup(func() { b.removeImage(t, tag) })
	id, err := b.engine.Build(ctx, runtime.BuildSpec{
		Tags:         []string{tag},
		Labels:       b.labels,
		WriteContext: images.WriteBaseContext,
	}, nil)
	if err != nil {
		t.Fatalf("build the base image: %v", err)
	}
	if b.Image, err = b.engine.Image(ctx, id); err != nil {
		t.Fatalf("inspect the base image: %v", err)
	}
	return b
}

// Run runs a container of the base image to its end, sealed like a capsule's unless
// the spec says otherwise, and returns what it printed and its exit code.
func (b *Base) Run(t *testing.T, spec runtime.ContainerSpec) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	spec.Image, spec.Labels = b.Image.ID, b.labels
	spec.ReadOnly, spec.Network = true, "none"
	spec.Tmpfs = map[string]string{"/tmp": "size=16m"}
	id, err := b.engine.Create(ctx, spec)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	defer b.remove(t, id)
	streams, err := b.engine.Attach(ctx, id)
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	defer streams.Close()
	exited, err := b.engine.NextExit(ctx, id)
	if err != nil {
		t.Fatalf("wait: %v", err)
	}
	if err := b.engine.Start(ctx, id); err != nil {
		t.Fatalf("start: %v", err)
	}
	stdout, stderr = readBoth(streams)
	code, err = exitCode(ctx, exited)
	if err != nil {
		t.Fatalf("exit: %v, after it printed:\n%s%s", err, stdout, stderr)
	}
	return stdout, stderr, code
}

func readBoth(streams *runtime.Streams) (stdout, stderr string) {
	var out, err strings.Builder
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&out, streams.Stdout) })
	_, _ = io.Copy(&err, streams.Stderr)
	reading.Wait()
	return out.String(), err.String()
}

func exitCode(ctx context.Context, exited <-chan runtime.Exit) (int, error) {
	select {
	case exit := <-exited:
		return exit.Code, exit.Err
	case <-ctx.Done():
		return -1, ctx.Err()
	}
}

func (b *Base) remove(t *testing.T, id string) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	if err := b.engine.Remove(ctx, id); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func (b *Base) removeImage(t *testing.T, tag string) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	if err := b.engine.RemoveImage(ctx, tag); err != nil {
		t.Errorf("remove the image: %v", err)
	}
}

func cleanupContext(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
}
