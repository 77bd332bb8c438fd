package main

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// inside is `aod serve` in this process, over an engine in memory that outlives it. What containers
// run are functions.
type inside struct {
	engine memoryEngine
	stop   context.CancelFunc
	code   int // of its end

	mu       sync.Mutex
	programs servicetest.Programs
}

// memoryEngine is the engine in memory, as the command wants it.
type memoryEngine struct {
	*enginetest.Fake
	swarm *fakeSwarm // nil: it is in none
}

func (memoryEngine) Close() error { return nil }

func (e memoryEngine) Carrier() runtime.ImageCarrier { return e.Fake }

func (memoryEngine) VolumesByLabel(context.Context, map[string]string) ([]runtime.VolumeRef, error) {
	return nil, nil
}

func (memoryEngine) RemoveVolume(context.Context, string) error { return nil }

// Nodes implements serverEngine.
func (e memoryEngine) Nodes(context.Context) ([]runtime.Node, error) {
	if e.swarm == nil {
		return nil, fault.New(fault.Unsupported, "the engine is no manager of a Swarm")
	}
	return e.swarm.list()
}

// newInside returns a server as newServer does, for a test of what needs no container: its protocols,
// its commands, what it stores. It is the command line's, but for the engine.
func newInside(t *testing.T, flags ...string) *server {
	t.Helper()
	i := &inside{programs: servicetest.Programs{}}
	i.engine.Fake = enginetest.NewFake(enginetest.WithInit(i.run))
	i.engine.AddImage(runtime.Image{
		ID: "sha256:base", Tags: []string{dockertest.Image, "aod/base"}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64",
	})
	s := newServerOn(t, i.engine, append([]string{"--grace", "1ms"}, flags...)...)
	s.inside = i
	return s
}

// run is the program of every container.
func (i *inside) run(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	i.mu.Lock()
	name := spec.Labels[runtime.LabelUnit]
	programs := servicetest.Programs{name: i.programs[name]}
	i.mu.Unlock()
	return programs.Run(ctx, spec, stdout, stderr)
}

// begin starts to serve, and returns what is closed when that has ended.
func (i *inside) begin(log *os.File, args []string) (ended chan struct{}) {
	ctx, stop := context.WithCancel(context.Background())
	said := &ui.Output{Writer: log, FD: -1}
	a := newApp(strings.NewReader(""), said, said)
	a.engine = func(docker.Options) (serverEngine, error) { return i.engine, nil }
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		defer log.Close()
		i.code = a.run(ctx, args)
	}()
	i.stop = stop
	return ended
}

// runs gives a unit its program, where that isn't a container's.
func (s *server) runs(unit string, program servicetest.Program) {
	if s.inside == nil {
		return
	}
	s.inside.mu.Lock()
	defer s.inside.mu.Unlock()
	s.inside.programs[unit] = program
}
