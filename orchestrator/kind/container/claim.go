package container

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// claim makes a warm sandbox the attempt's. After an error before the sandbox has its run,
// the caller discards it.
func (x *execution) claim(ctx context.Context, s *pool.Sandbox) error {
	began := time.Now()
	if err := x.moveIn(s); err != nil {
		return err
	}
	spec := s.Spec
	if err := x.program.prepare(ctx, x, &spec, s.Layout); err != nil {
		return err
	}
	secrets, err := x.secretEnv()
	if err != nil {
		return err
	}
	a := &attempt{x: x, sandbox: s.Runtime, layout: s.Layout, limits: x.limits(), log: s.Log, origin: warm}
	if s.Loaded {
		a.origin = loaded
	}
	if slot := x.saved.Slot; slot.Number > 0 {
		a.shared, s.Had, s.Last = s, slot.Number, x.ID
		slot.Share(s.Log, x.ID)
	}
	if a.api, err = x.takeAPI(s, a.limits); err != nil {
		return err
	}
	s.Lines.HandTo(x.Log)
	if !s.Loaded {
		if err := s.Runtime.StartProgram(spec, slices.Concat(spec.Env[len(s.Spec.Env):], secrets)); err != nil {
			a.api.close(run.ErrCallerEnded)
			return err
		}
	}
	x.attempt, x.Record.Image = a, s.Image
	x.Record.Container = &api.Container{
		ID: s.Runtime.ID(), WaitedMS: run.Milliseconds(began.Sub(s.Since)),
		Served: x.saved.Slot.Number,
	}
	x.Record.Timings.Create = 0
	x.Record.Timings.Start = run.Milliseconds(time.Since(began))
	return nil
}

// moveIn makes the sandbox's directory the attempt's, with the run's input in it.
func (x *execution) moveIn(s *pool.Sandbox) error {
	if err := safefs.RemoveTree(x.AttemptDir()); err != nil {
		return err
	}
	if err := os.Rename(s.Layout.Dir, x.AttemptDir()); err != nil {
		return run.StorageFault(err)
	}
	s.Layout = runtime.OpenLayout(x.AttemptDir(), "")
	s.Runtime.Assign(s.Layout)
	return x.placeInput()
}
