package orchestrator

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/agent-on-demand/aod/fault"
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
	log.Skip(seen.stdout, seen.stderr)
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
	if b.run.record.State != Running { // as it is when the container was adopted
		started := b.sandbox.StartedAt().UTC()
		b.run.record.StartedAt = &started
		if err := b.run.enter(Running, ""); err != nil {
			return runtime.End{}, err
		}
	}
	began := time.Now()
	limited, stop := context.WithTimeoutCause(ctx, b.limits.Timeout-time.Since(*b.run.record.StartedAt), errTimeout)
	defer stop()
	defer b.desk.until(limited)()
	defer b.run.req.Stream.join(ctx, b.layout)()
	end, err := b.sandbox.Wait(limited)
	b.run.record.Timings.Run = milliseconds(time.Since(began))
	b.run.record.Log.Bytes, b.run.record.Log.Truncated = b.log.Bytes()
	if fault.Is(err, fault.NotFound) {
		err = vanished(err)
	}
	return end, err
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
		Image:     image,
		Network:   agent.Network,
		ReadOnly:  agent.ReadOnly,
		Isolation: agent.Runtime,
		Limits:    run.req.limits(o.limits),
		Labels:    o.labels,
		Env:       apiEnv,
	}
}

// apiEnv says where the capsule API is (DESIGN: the capsule API).
var apiEnv = []string{
	"AOD_URL=http://127.0.0.1:7070", "AOD_SOCKET=/run/aod/aod.sock", "ORCHESTRATOR_URL=http://127.0.0.1:7070",
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
