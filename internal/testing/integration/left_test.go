package integration_test

import (
	"context"
	"testing"

	"github.com/testcontainers/testcontainers-go"

	"github.com/agent-on-demand/aod/runtime"
)

// nothingLeft removes the server and its volume, and proves that it left nothing else.
func (s *server) nothingLeft() {
	ctx := context.Background()
	if s.t.Failed() {
		s.showLog()
	}
	s.noSandboxes(ctx)
	if s.container != nil {
		if err := s.container.Terminate(ctx, testcontainers.StopTimeout(0), testcontainers.RemoveVolumes(s.volume)); err != nil {
			s.t.Errorf("remove the server: %v", err)
		}
		if _, err := s.container.State(ctx); err == nil {
			s.t.Error("the server's container is left")
		}
	}
	if _, err := s.docker.VolumeInspect(ctx, s.volume); err == nil {
		s.t.Errorf("the volume %s is left", s.volume)
	}
	if err := s.docker.Close(); err != nil {
		s.t.Error(err)
	}
}

// noSandboxes proves that no run of this server's has a container any more, and removes
// what is there all the same.
func (s *server) noSandboxes(ctx context.Context) {
	for _, id := range s.runs {
		for _, sandbox := range sandboxes(ctx, s.t, s.engine, id) {
			s.t.Errorf("run %s has left container %.12s, %s", id, sandbox.ID, sandbox.State)
			if err := s.engine.Remove(ctx, sandbox.ID); err != nil {
				s.t.Error(err)
			}
		}
	}
}

func sandboxes(ctx context.Context, t *testing.T, engine runtime.Containers, run string) []runtime.ContainerRef {
	t.Helper()
	found, err := engine.ContainersByLabel(ctx, map[string]string{runtime.LabelRun: run})
	if err != nil {
		t.Error(err)
	}
	return found
}
