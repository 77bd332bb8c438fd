package container

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/safefs"
	"github.com/agent-on-demand/aod/unit"
)

// source starts the sandboxes of the pool.
type source struct{ *Containers }

// canWait reports whether a unit's sandboxes can be started before their runs are known. Under
// an isolation runtime they can't: the init may be unable to reach AOD.
func canWait(u *unit.Unit) bool {
	_, err := capsuleOf(u)
	return err == nil && u.Policy.Isolation == "" && u.Policy.Refusal == nil
}

// Wants implements pool.Source.
func (s source) Wants(u *unit.Unit) int {
	if !canWait(u) {
		return 0
	}
	return u.Policy.Warm
}

// Start implements pool.Source.
func (s source) Start(ctx context.Context, u *unit.Unit, id string, loaded bool) (*pool.Sandbox, error) {
	r := &run.Run{ID: id, Unit: u}
	r.LedBy(noHost{}, nil)
	image, err := s.ensureImage(ctx, r)
	if err != nil {
		return nil, err
	}
	waiting := pool.NewSandbox(id, pool.Key(u), loaded)
	waiting.Image, waiting.Runs = r.Record.Image, runsOf(u, image, loaded)
	waiting.Spec = s.spec(u, id, image)
	waiting.Spec.Limits = programOf(u).limits(run.Request{Unit: u}.Limits(s.opts.Limits))
	waiting.Spec.Durable, waiting.Spec.Park = true, !loaded
	if err := programOf(u).waiting(s.Containers, u, &waiting.Spec); err != nil {
		return nil, err
	}
	if err := s.place(waiting, image); err != nil {
		return nil, errors.Join(err, safefs.RemoveTree(waiting.Layout.Dir))
	}
	return waiting, waiting.Start(ctx, s.life, s.startSandbox, s.logger)
}

func (s source) place(waiting *pool.Sandbox, image runtime.Image) error {
	waiting.Layout = runtime.OpenLayout(filepath.Join(s.poolDir(), waiting.ID), "")
	if err := os.MkdirAll(waiting.Layout.Dir, 0o700); err != nil {
		return run.StorageFault(err)
	}
	initFile, err := s.initFile(image.Arch)
	if err != nil {
		return err
	}
	waiting.Layout, err = runtime.NewLayout(waiting.Layout.Dir, initFile)
	return err
}

// Remove implements pool.Source.
func (s source) Remove(ctx context.Context, id string) error { return s.SweepRun(ctx, id) }

// runsOf returns how many runs a warm sandbox may serve. It is one if the image has volumes,
// since those are not emptied between runs.
func runsOf(u *unit.Unit, image runtime.Image, loaded bool) int {
	if !loaded || len(image.Volumes) > 0 {
		return 1
	}
	return max(u.Policy.Reuse, 1)
}
