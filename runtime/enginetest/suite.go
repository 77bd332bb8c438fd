package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// Harness is an engine under test.
type Harness struct {
	Engine runtime.Engine
	// Image is the reference of an image that has /bin/sh and Debian's basic
	// commands, or, for a fake, whose program knows the suite's Scripts.
	Image string
}

// Label is on all that the suite makes.
const Label = "aod.test"

// The scripts that the suite runs by `/bin/sh -c`.
const (
	scriptGreet  = "echo out; echo err >&2; exit 7"
	scriptFlood  = "head -c 10485760 /dev/zero | tr '\\0' o; head -c 10485760 /dev/zero | tr '\\0' e >&2"
	scriptSleep  = "exec sleep 300"
	scriptPolite = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done"
	scriptDeaf   = "echo ready; while :; do sleep 0.05; done"
	scriptSmall  = "exit 0"
)

const floodBytes = 10 << 20

// Run tests an engine; newEngine is called for each part. At the end nothing that
// the suite labelled is left on the engine.
func Run(t *testing.T, newEngine func(t *testing.T) Harness) {
	parts := []struct {
		name string
		test func(*testing.T, suite)
	}{
		{"containers", testContainers},
		{"output", testOutput},
		{"kept output", testLogs},
		{"ending", testEnding},
		{"what is not there", testMissing},
		{"images", testImages},
		{"builds with BuildKit", func(t *testing.T, s suite) { testBuilds(t, s, false) }},
		{"builds with the classic builder", func(t *testing.T, s suite) { testBuilds(t, s, true) }},
		{"contexts", testContexts},
		{"carried files", testCarried},
		{"programs beside the container's", testExecs},
		{"terminals", testTerminals},
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			s := suite{newEngine(t), map[string]string{Label: fmt.Sprintf("enginetest-%d", time.Now().UnixNano())}}
			t.Cleanup(func() { s.expectNothingLeft(t) })
			part.test(t, s)
		})
	}
}

// suite is a harness and the labels of one part.
type suite struct {
	Harness
	labels map[string]string
}

// expectNothingLeft polls, because an engine that was told to stop a build takes a
// moment to clear away its container.
func (s suite) expectNothingLeft(t *testing.T) {
	ctx := s.context(t)
	testkit.Eventually(t, "nothing of the test is left on the engine", func() bool {
		containers, containersErr := s.Engine.ContainersByLabel(ctx, s.labels)
		images, imagesErr := s.Engine.ImagesByLabel(ctx, s.labels)
		volumes, volumesErr := s.volumes(ctx)
		return errors.Join(containersErr, imagesErr, volumesErr) == nil && len(containers)+len(images)+len(volumes) == 0
	})
}

// volumes are those of the suite, as far as the engine has any.
func (s suite) volumes(ctx context.Context) ([]runtime.VolumeRef, error) {
	remote, ok := s.Engine.(runtime.RemoteEngine)
	if !ok {
		return nil, nil
	}
	return remote.VolumesByLabel(ctx, s.labels)
}

func (s suite) context(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}

func (s suite) spec(script string) runtime.ContainerSpec {
	return runtime.ContainerSpec{
		Image: s.Image, Entrypoint: []string{"/bin/sh", "-c"}, Cmd: []string{script},
		Network: "none", User: "65534:65534", Labels: s.labels, ReadOnly: true,
	}
}

// create makes a container that is removed at the end of the test.
func (s suite) create(t *testing.T, spec runtime.ContainerSpec) string {
	t.Helper()
	id, err := s.Engine.Create(s.context(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Engine.Remove(s.context(t), id); err != nil {
			t.Error(err)
		}
	})
	return id
}

// running is a started container whose output is being collected.
type running struct {
	id             string
	exits          <-chan runtime.Exit
	streams        *runtime.Streams
	stdout, stderr *collector
}

func (s suite) start(t *testing.T, spec runtime.ContainerSpec) running {
	t.Helper()
	ctx := s.context(t)
	r := running{id: s.create(t, spec)}
	var err error
	if r.streams, err = s.Engine.Attach(ctx, r.id); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.streams.Close() })
	r.stdout, r.stderr = collect(r.streams.Stdout), collect(r.streams.Stderr)
	if r.exits, err = s.Engine.NextExit(ctx, r.id); err != nil {
		t.Fatal(err)
	}
	if err := s.Engine.Start(ctx, r.id); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r running) wait(t *testing.T) runtime.Exit {
	t.Helper()
	return receive(t, r.exits)
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(testkit.Patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// collector holds what was read of a stream so far.
type collector struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	done chan error
}

func collect(r io.Reader) *collector {
	c := &collector{done: make(chan error, 1)}
	go func() {
		_, err := io.Copy(c, r)
		c.done <- err
	}()
	return c
}

func (c *collector) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(p)
}

func (c *collector) soFar() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.String()
}

// all returns everything once the stream has ended.
func (c *collector) all(t *testing.T) string {
	t.Helper()
	if err := receive(t, c.done); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
	return c.soFar()
}

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("error is %v (%v), want %v", fault.KindOf(err), err, kind)
	}
}
