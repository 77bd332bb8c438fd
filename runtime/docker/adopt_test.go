package docker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
)

// byteScript leaves a byte for each time that it runs.
const byteScript = "printf x >> /io/output/runs; "

func (d *durable) wantOneRun(t *testing.T) {
	t.Helper()
	if raw, err := os.ReadFile(filepath.Join(d.layout.Dir, "io/output/runs")); err != nil || string(raw) != "x" {
		t.Errorf("the program has left %q, %v", raw, err)
	}
}

func TestASandboxOutlivesItsProcess(t *testing.T) {
	d, engine := newDurable(t, byteScript+"cat /io/input/file; echo early >&2; while [ ! -e /io/go ]; do sleep 0.02; done; echo after; exit 5")
	id := d.start(t, engine, "stdout: given")
	s, seen := d.adopted(t, 0)
	if s.ID() != id || s.StartedAt().IsZero() || time.Since(s.StartedAt()) > testkit.Patience {
		t.Errorf("%s started at %v", s.ID(), s.StartedAt())
	}
	if err := os.WriteFile(filepath.Join(d.layout.Dir, "io/go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	end, err := s.Wait(t.Context())
	if err != nil || end.ExitCode != 5 || end.Outside || !end.Reported || end.FinishedAt.IsZero() {
		t.Errorf("%+v, %v", end, err)
	}
	if diff := cmp.Diff([]string{"stderr: early", "stdout: after", "stdout: given"}, seen.sorted()); diff != "" {
		t.Error(diff)
	}
	s.Release()
	t.Run("and is adopted once more after its end", func(t *testing.T) {
		s, seen := d.adopted(t, 1)
		again, err := s.Wait(t.Context())
		if err != nil || cmp.Diff(end, again) != "" {
			t.Errorf("%+v, %v; before %+v", again, err, end)
		}
		if diff := cmp.Diff([]string{"stderr: early", "stdout: after"}, seen.sorted()); diff != "" {
			t.Error(diff)
		}
		if err := s.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	})
	d.wantOneRun(t)
}

// created makes the container as a process does that dies before it starts it.
func (d *durable) created(t *testing.T, engine *docker.Engine) (id string) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := runtime.Start(ctx, unstarted{engine, cancel}, d.spec, d.layout, new(lines).log())
	if !errors.Is(err, runtime.ErrDetach) {
		t.Fatal(err)
	}
	refs, err := runtime.Find(t.Context(), engine, d.spec.Run, d.spec.Owner)
	if err != nil || len(refs) != 1 || refs[0].State != runtime.StatusCreated {
		t.Fatalf("%+v, %v", refs, err)
	}
	return refs[0].ID
}

// unstarted is an engine whose client goes away before it starts anything.
type unstarted struct {
	*docker.Engine
	detach context.CancelCauseFunc
}

func (u unstarted) Start(ctx context.Context, _ string) error {
	u.detach(runtime.ErrDetach)
	return ctx.Err()
}

func TestAContainerThatWasNotStartedYetRunsOnce(t *testing.T) {
	t.Run("started by who adopts it", func(t *testing.T) {
		d, engine := newDurable(t, byteScript+"echo done; exit 5")
		d.created(t, engine)
		d.wantEnd(t, nil)
	})
	t.Run("while the call of the process before is under way", func(t *testing.T) {
		d, engine := newDurable(t, byteScript+"echo done; exit 5")
		id := d.created(t, engine)
		first := make(chan error, 1)
		go func() { first <- engine.Start(context.Background(), id) }()
		d.wantEnd(t, func() { // the call may come late, but not after the removal
			if err := <-first; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("by a call that comes when all is over", func(t *testing.T) {
		d, engine := newDurable(t, byteScript+"echo done; exit 5")
		id := d.created(t, engine)
		d.wantEnd(t, func() {
			exits, err := engine.NextExit(t.Context(), id)
			if err == nil {
				err = engine.Start(t.Context(), id)
			}
			if err != nil {
				t.Fatal(err)
			}
			if exit := <-exits; exit.Code != 125 {
				t.Errorf("exit %+v", exit)
			}
		})
	})
}

// wantEnd adopts a sandbox, waits for its end, does something and looks what it has left.
func (d *durable) wantEnd(t *testing.T, then func()) {
	t.Helper()
	s, seen := d.adopted(t, 0)
	end, err := s.Wait(t.Context())
	if err != nil || end.ExitCode != 5 || end.Outside || end.Report.ExitCode != 5 || s.StartedAt().IsZero() || !seen.has("stdout: done") {
		t.Errorf("%+v, %v; log %q", end, err, seen.sorted())
	}
	if then != nil {
		then()
	}
	d.wantOneRun(t)
	if err := s.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheEngineTellsWhoEndedASandbox(t *testing.T) {
	cases := []struct {
		name, script string
		do           func(e *docker.Engine, id string) error
		code         int
		outside      bool
	}{
		{"killed from outside", "echo ready; exec sleep 300", func(e *docker.Engine, id string) error { return e.Kill(t.Context(), id) }, 137, true},
		{"stopped from outside", "echo ready; exec sleep 300", func(e *docker.Engine, id string) error { return e.Stop(t.Context(), id, time.Minute) }, 143, true},
		{"stopped from outside, and it was deaf", "trap '' TERM; echo ready; while :; do sleep 1; done", func(e *docker.Engine, id string) error { return e.Stop(t.Context(), id, 0) }, 137, true},
		{"by a kill of itself", "echo ready; kill -9 $$", nil, 137, false},
		{"by SIGTERM to all that it can reach", "echo ready; kill -TERM -1; kill -TERM 0", nil, 143, false},
		{"by a code like a kill's", "echo ready; exit 137", nil, 137, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, engine := newDurable(t, c.script)
			var seen lines
			s, err := runtime.Start(t.Context(), engine, d.spec, d.layout, seen.log())
			if err != nil {
				t.Fatal(err)
			}
			if !eventually(t.Context(), func() bool { return seen.has("stdout: ready") }) {
				t.Fatal("it never began")
			}
			if c.do != nil {
				if err := c.do(engine, s.ID()); err != nil {
					t.Fatal(err)
				}
			}
			end, err := s.Wait(t.Context())
			if err != nil || end.ExitCode != c.code || end.Outside != c.outside || end.OOMKilled {
				t.Errorf("%+v, %v", end, err)
			}
			if err := s.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAMemoryHogIsNotEndedFromOutside(t *testing.T) {
	d, engine := newDurable(t, "x=a; while :; do x=$x$x; done")
	d.spec.Limits.MemoryBytes = 32 << 20
	s, err := runtime.Start(t.Context(), engine, d.spec, d.layout, new(lines).log())
	if err != nil {
		t.Fatal(err)
	}
	if end, err := s.Wait(t.Context()); err != nil || end.Outside || end.ExitCode != 137 || !end.OOMKilled && end.Report.OOMKills == 0 {
		t.Errorf("%+v, %v", end, err)
	}
	if err := s.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnAttemptNeedsItsOwnName(t *testing.T) {
	d, engine := newDurable(t, "exit 0")
	d.created(t, engine)
	if _, err := runtime.Start(t.Context(), engine, d.spec, d.layout, new(lines).log()); err == nil || !strings.Contains(err.Error(), "of this name is there already") {
		t.Error(err)
	}
	d.spec.Attempt = 2
	s, err := runtime.Start(t.Context(), engine, d.spec, d.layout, new(lines).log())
	if err != nil {
		t.Fatal(err)
	}
	if end, err := s.Wait(t.Context()); err != nil || end.ExitCode != 0 {
		t.Errorf("%+v, %v", end, err)
	}
	if refs, err := runtime.Find(t.Context(), engine, d.spec.Run, d.spec.Owner); err != nil || len(refs) != 2 {
		t.Errorf("%+v, %v", refs, err)
	}
	s.Release()
}
