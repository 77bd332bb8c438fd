package container

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// open gives the attempt a container: the existing one, a warm one, or a new one.
func (x *execution) open(ctx context.Context) (err error) {
	container := ""
	if x.footprint.uncertain {
		container, err = x.footprint.reconcile(ctx)
	}
	if err == nil && container == "" {
		err = x.launch(ctx)
		if !fault.Is(err, fault.Conflict) {
			return err
		}
		container, err = x.footprint.awaitNamed(ctx)
	}
	if err != nil {
		return err
	}
	return x.adopt(ctx, container)
}

// adopt goes on with the container that an earlier process started.
func (x *execution) adopt(ctx context.Context, container string) (err error) {
	x.machine.logger.Info("adopting container", "run", x.run.ID, "attempt", x.run.Attempt, "container",
		container)
	if x.attempt, err = x.adopted(ctx, container); err != nil {
		return err
	}
	if x.saved.Sandboxes[x.run.Attempt] != "" {
		x.attempt.origin = warm
	}
	if x.run.State() != api.Running { // the earlier process stored no more
		a := x.attempt
		x.run.Record.Container = &api.Container{
			ID:       container,
			WaitedMS: run.Milliseconds(a.startedAt().Sub(a.sandbox.StartedAt())), Served: x.saved.Slot.Number,
		}
	}
	return nil
}

// launch gives the attempt a warm container, or else a new one.
func (x *execution) launch(ctx context.Context) error {
	x.apis.drop(run.ErrCallerEnded)
	x.log.beginAnew()
	x.saved.Slot = pool.ReuseSlot{}
	var waiting *pool.Sandbox
	if !x.pooled.cold && !x.run.Project && x.run.Session == nil && x.run.Start.Dir == "" && canWait(x.run.Unit) {
		waiting = x.pooled.pool.Acquire(x.run.Unit)
	}
	if waiting == nil {
		return x.launchCold(ctx)
	}
	x.pooled.acquire(waiting)
	x.footprint.begun = true
	if err := x.run.Enter(api.Starting, ""); err != nil {
		return errors.Join(err, waiting.Discard(ctx))
	}
	err := x.claim(ctx, waiting)
	if err == nil {
		return nil
	}
	x.machine.logger.Warn("waiting sandbox not claimed", "run", x.run.ID, "sandbox", waiting.ID,
		fault.LogAttr(err))
	x.pooled.abandon(waiting.Discard(ctx) == nil)
	if err := x.run.Enter(api.Failed, "the waiting sandbox could not be claimed"); err != nil {
		return err
	}
	return x.launchCold(ctx)
}

// refuseWarm gives up a warm sandbox whose program never got the run. The run has had no
// effect yet.
func (x *execution) refuseWarm(ctx context.Context) error {
	const reason = "the waiting sandbox ended before its run began"
	x.machine.logger.Warn(reason, "run", x.run.ID, "sandbox", x.saved.Sandboxes[x.run.Attempt])
	x.pooled.abandon(x.discard(ctx))
	x.saved.Refused = x.run.Logged()
	return x.run.Enter(api.Failed, reason)
}

// launchCold starts a new container for the attempt.
func (x *execution) launchCold(ctx context.Context) error {
	defer x.pooled.pool.ColdStart()()
	if err := x.run.Enter(api.Starting, ""); err != nil {
		return err
	}
	err := x.launchNew(ctx)
	if fault.Is(err, fault.NotFound) { // somebody removed the image
		x.images.forget(x.run.Unit)
		x.machine.opts.Patches.forget(x.run.Unit.Name)
		err = x.launchNew(ctx)
	}
	return err
}

func (x *execution) launchNew(ctx context.Context) error {
	image, lacks, err := x.images.forAttempt(ctx, x.run)
	if err != nil {
		return err
	}
	x.footprint.begun = true
	x.attempt, err = x.start(ctx, image, lacks)
	return err
}

// start prepares the attempt's directory and starts its container. patch is what the image lacks of
// the unit.
func (x *execution) start(ctx context.Context, image runtime.Image, patch *patch) (*attempt, error) {
	layout, err := x.place(ctx, image)
	if err != nil {
		return nil, err
	}
	spec := x.spec(image)
	if err := x.program.prepare(ctx, x, &spec, layout); err != nil {
		return nil, err
	}
	secrets, err := x.machine.secretEnv(x.run)
	if err != nil {
		return nil, err
	}
	if len(secrets) > 0 && spec.Mode == runtime.ModeOnce {
		spec.Mode = runtime.ModeParked
	}
	if spec.Patch, err = patch.place(layout.Dir); err != nil {
		return nil, err
	}
	layout = layout.At(x.machine.engine, spec)
	a := &attempt{x: x, layout: layout, limits: spec.Limits, log: runtime.NewLog(spec.Limits.LogBytes, x.log.take)}
	if a.api, err = x.apis.open(ctx, layout, spec.Limits); err != nil {
		return nil, err
	}
	a.sandbox, err = x.starter.start(ctx, spec, layout, a.log)
	if err == nil && spec.Mode == runtime.ModeParked {
		err = x.starter.begin(ctx, a.sandbox, spec, secrets)
	}
	if err != nil {
		x.leave(ctx, a.api, err)
		return nil, err
	}
	x.run.Record.Container = &api.Container{ID: a.sandbox.ID()}
	noteStart(x.run, a.sandbox)
	return a, nil
}

// adopted returns the attempt of a container that an earlier process started.
func (x *execution) adopted(ctx context.Context, container string) (*attempt, error) {
	image, err := x.images.ensure(ctx, x.run)
	if err != nil {
		return nil, err
	}
	if _, err := x.machine.secretEnv(x.run); err != nil { // they are to be hidden; the program has had them
		x.run.Warn("secrets of the run can't be read any more, and aren't hidden in what it tells from here on")
	}
	spec := x.spec(image)
	log := x.log.resumed(spec.Limits.LogBytes)
	layout := runtime.OpenLayout(x.run.AttemptDir(), x.run.InputDir())
	if _, err := os.Stat(x.run.OutputDir()); err == nil { // the earlier process came as far as that
		layout.Output = x.run.OutputDir()
	}
	layout = x.session.keptIn(layout)
	x.program.adopt(x, &spec)
	layout = layout.At(x.machine.engine, spec)
	server, err := x.apis.open(ctx, layout, spec.Limits)
	if err != nil {
		return nil, err
	}
	sandbox, err := runtime.Adopt(ctx, x.machine.engine, container, spec, layout, log)
	if err != nil {
		x.leave(ctx, server, err)
		return nil, err
	}
	return &attempt{x: x, sandbox: sandbox, layout: layout, limits: spec.Limits, log: log, api: server}, nil
}

// place prepares the attempt's directory: /io with the input and its files. If a dead process left
// one, nothing was started in it.
func (x *execution) place(ctx context.Context, image runtime.Image) (runtime.Layout, error) {
	layout, err := x.starter.newLayout(x.run.AttemptDir(), image, x.run.InputDir())
	if err != nil {
		return layout, err
	}
	layout = x.session.keptIn(layout)
	return layout, errors.Join(x.session.make(ctx, layout), layout.WriteInput(x.run.Input.Payload.JSON()))
}

func (x *execution) spec(image runtime.Image) runtime.Spec {
	spec := x.starter.spec(x.run.Unit, x.run.ID, image)
	spec.Root, spec.Attempt, spec.Durable, spec.Limits = x.run.Lineage.Root, x.run.Attempt, x.run.Durable, x.limits()
	if x.run.Session != nil {
		spec.Session = x.run.Session.ID
	}
	return spec
}

// claim makes a warm sandbox the attempt's. After an error before the sandbox has its run,
// the caller discards it.
func (x *execution) claim(ctx context.Context, s *pool.Sandbox) error {
	began := time.Now()
	if err := x.pooled.moveIn(s); err != nil {
		return err
	}
	spec := s.Spec
	if err := x.program.prepare(ctx, x, &spec, s.Layout); err != nil {
		return err
	}
	secrets, err := x.machine.secretEnv(x.run)
	if err != nil {
		return err
	}
	a := &attempt{x: x, sandbox: s.Runtime, layout: s.Layout, limits: x.limits(), log: s.Log, origin: warm}
	if s.Loaded {
		a.origin = loaded
	}
	if x.pooled.share(s) {
		a.shared = s
	}
	if a.api, err = x.apis.take(s, a.limits); err != nil {
		return err
	}
	s.Lines.HandTo(x.log.take)
	if !s.Loaded {
		if err := s.Runtime.StartProgram(spec, slices.Concat(spec.Env[len(s.Spec.Env):], secrets)); err != nil {
			a.api.close(run.ErrCallerEnded)
			return err
		}
	}
	x.attempt, x.run.Record.Image = a, s.Image
	x.run.Record.Container = &api.Container{
		ID: s.Runtime.ID(), WaitedMS: run.Milliseconds(began.Sub(s.Since)),
		Served: x.saved.Slot.Number,
	}
	x.run.Record.Timings.Create = 0
	x.run.Record.Timings.Start = run.Milliseconds(time.Since(began))
	return nil
}
