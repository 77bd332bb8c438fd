package orchestrator

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
)

// box is the sandbox of one attempt, with what is needed to read its result.
type box struct {
	run     *Run
	sandbox *runtime.Sandbox
	layout  runtime.Layout
	limits  runtime.Limits
	log     *runtime.Log
	desk    *desk

	waited bool    // it was started before there was a run
	deep   bool    // and so was its program
	early  bool    // its end was told before the container's own
	alive  bool    // it has ended, and its program hasn't
	parked *parked // what it was, where it may be so again; else nil
}

// start makes the run's image and its directories in dir, and starts its container.
func (o *Orchestrator) start(ctx context.Context, run *Run, dir string) (*box, error) {
	image, err := o.ensureImage(ctx, run)
	if err != nil {
		return nil, err
	}
	layout, err := o.place(run, dir, image)
	if err != nil {
		return nil, err
	}
	spec := o.spec(run, image)
	if run.isAU() {
		if err := o.filter(ctx, run, &spec, layout); err != nil {
			return nil, err
		}
	}
	layout = layout.At(o.engine, spec)
	b := &box{run: run, layout: layout, limits: spec.Limits, log: runtime.NewLog(spec.Limits.LogBytes, run.logged)}
	if b.desk, err = o.openDesk(ctx, run, layout, spec.Limits); err != nil {
		return nil, err
	}
	b.sandbox, err = o.startSandbox(ctx, spec, layout, b.log)
	if err != nil {
		b.desk.close(errCallerEnded)
		return nil, err
	}
	timings := b.sandbox.Timings()
	run.record.Container = &api.Container{ID: b.sandbox.ID()}
	run.record.Timings.Create, run.record.Timings.Start = milliseconds(timings.Create), milliseconds(timings.Start)
	return b, nil
}

// startSandbox starts no more containers at once than the engine does well.
func (o *Orchestrator) startSandbox(ctx context.Context, spec runtime.Spec, layout runtime.Layout, log *runtime.Log) (*runtime.Sandbox, error) {
	if err := o.starts.take(ctx); err != nil {
		return nil, err
	}
	defer o.starts.give()
	ctx, span := tracer.Start(ctx, "start")
	defer span.End()
	return runtime.Start(ctx, o.engine, spec, layout, log)
}

// adopt takes over the container that an earlier process started in dir.
func (o *Orchestrator) adopt(ctx context.Context, run *Run, container, dir string, seen seenLines) (*box, error) {
	image, err := o.ensureImage(ctx, run)
	if err != nil {
		return nil, err
	}
	spec := o.spec(run, image)
	log := runtime.NewLog(spec.Limits.LogBytes, run.logged)
	log.Skip(seen.Stdout, seen.Stderr)
	run.lease.share(log, run.id)
	if run.lease.Behind != "" {
		log.After(handoff.EndLine(run.lease.Behind))
	}
	layout := runtime.OpenLayout(dir, run.inputs)
	if _, err := os.Stat(run.published); err == nil { // the earlier process came as far as that
		layout.Output = run.published
	}
	if run.isAU() {
		spec.Filter = &runtime.Filter{} // it was started with more
	}
	layout = layout.At(o.engine, spec)
	desk, err := o.openDesk(ctx, run, layout, spec.Limits)
	if err != nil {
		return nil, err
	}
	sandbox, err := runtime.Adopt(ctx, o.engine, container, spec, layout, log)
	if err != nil {
		desk.close(errCallerEnded)
		return nil, err
	}
	return &box{run: run, sandbox: sandbox, layout: layout, limits: spec.Limits, log: log, desk: desk}, nil
}

// place makes the attempt's directory ready: /io with the input and its files.
func (o *Orchestrator) place(run *Run, dir string, image runtime.Image) (runtime.Layout, error) {
	initFile, err := o.initFile(image.Arch)
	if err != nil {
		return runtime.Layout{}, err
	}
	layout, err := runtime.NewLayoutWith(dir, initFile, run.inputs)
	if err != nil {
		return layout, err
	}
	for _, f := range run.ready.files {
		if err := layout.AddInput(f.source, f.name); err != nil {
			return layout, err
		}
	}
	return layout, layout.WriteInput(run.ready.input.JSON())
}

// errTimeout is the cause of a run's end when its own time is up.
var errTimeout = errors.New("the run's time is up")

// wait enters Running and returns with the end of the container: by itself, at its
// time limit, or stopped with ctx.
func (b *box) wait(ctx context.Context) (runtime.End, error) {
	if b.run.record.State != api.Running { // as it is when the container was adopted
		started := b.startedAt().UTC()
		b.run.record.StartedAt = &started
		if err := b.run.enter(api.Running, ""); err != nil {
			return runtime.End{}, err
		}
	}
	began := time.Now()
	limited, stop := context.WithTimeoutCause(ctx, b.limits.Timeout-time.Since(*b.run.record.StartedAt), errTimeout)
	defer stop()
	defer b.desk.until(limited)()
	defer b.run.req.Stream.join(ctx, b.layout)()
	end, err := b.sandbox.WaitOr(limited, b.desk.done())
	b.alive = end.Alive
	b.run.record.Timings.Run = milliseconds(time.Since(began))
	if b.early = end.Early; !b.early {
		b.noteLog()
	}
	if fault.Is(err, fault.NotFound) {
		err = vanished(err)
	}
	return end, err
}

// startedAt is when the attempt's time began: a container that waited ran before that.
func (b *box) startedAt() time.Time {
	started := b.sandbox.StartedAt()
	transitions := b.run.record.Transitions
	if began := transitions[len(transitions)-1].At; b.waited && started.Before(began) {
		return began
	}
	return started
}

// leaveDesk ends the API for the attempt, and for the program as well where that has no
// other run.
func (b *box) leaveDesk(cause error) {
	if b.alive && b.parked != nil && b.desk.release(cause) {
		return
	}
	b.parked = nil
	b.desk.close(cause)
}

// noteLog takes into the record how much the program wrote.
func (b *box) noteLog() {
	stats := &b.run.record.Log
	stats.Bytes, stats.Truncated = b.log.Bytes()
	if stats.Truncated {
		b.run.warn("the log was cut: the %s wrote more than its limit (limits.log)", b.run.noun())
	}
}

// rest waits for what an early end left to come, and takes it into the record.
func (b *box) rest(ctx context.Context) {
	exit, err := b.sandbox.Settle(ctx)
	b.noteRest(exit, err)
}

// noteRest: the result counts, whatever the container did afterwards.
func (b *box) noteRest(exit runtime.Exit, err error) {
	b.noteLog()
	switch {
	case err != nil || exit.Err != nil:
		b.run.warn("the engine didn't say how the container ended, after its program had ended well")
	case exit.Code != 0:
		b.run.warn("the container ended with exit code %d, after its program had ended well", exit.Code)
	}
}

// vanished is the fault of a container that somebody removed under the run's hands.
func vanished(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the run's container vanished").
		WithHint("somebody removed it from the engine; run it again")
}

func (o *Orchestrator) spec(run *Run, image runtime.Image) runtime.Spec {
	agent := run.req.Capsule.Agent
	return runtime.Spec{
		Run: run.id, Root: run.family.root, Unit: run.req.Capsule.Name, Owner: o.owner,
		Attempt:   run.attempt,
		Durable:   run.journal != nil,
		Control:   true,
		Image:     image,
		Network:   agent.Network,
		ReadOnly:  agent.ReadOnly,
		Isolation: agent.Runtime,
		Limits:    run.req.limits(o.limits),
		Labels:    o.labels,
		Env:       programEnv,
	}
}

// programEnv says where the capsule API is (DESIGN: the capsule API), and that input and
// output are held against the contract outside of the container, whoever does it in there.
var programEnv = []string{
	"AOD_URL=http://127.0.0.1:7070", "AOD_SOCKET=/run/aod/aod.sock", "ORCHESTRATOR_URL=http://127.0.0.1:7070",
	"AOD_VALIDATES=1",
}

// gate lets a number of callers through at once; nil lets everybody.
type gate chan struct{}

func newGate(width int) gate {
	if width <= 0 {
		return nil
	}
	return make(gate, width)
}

func (g gate) take(ctx context.Context) error {
	if g == nil {
		return nil
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g gate) give() {
	if g != nil {
		<-g
	}
}
