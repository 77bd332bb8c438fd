package container

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initbin"
)

// starter starts sandboxes, with or without a run. A program that gets secrets is parked, in a new sandbox, too: its
// init gets them with what it starts.
type starter struct {
	machine *machine
	starts  *semaphore.Weighted // containers started at once
	inits   initbin.Installer
}

// newLayout makes an empty directory and lays it out for a sandbox of the image, whose input files
// lie in a directory of their own; "" is none. Files that an engine elsewhere gives back are put in their
// place, and so in no project.
func (s *starter) newLayout(dir string, image runtime.Image, input string) (runtime.Layout, error) {
	layout := runtime.OpenLayout(dir, input)
	initFile, err := s.inits.Install(s.machine.home.Bin, image.Arch) // from where runs can link to it
	if err != nil {
		return layout, err
	}
	if err := errors.Join(safefs.RemoveTree(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return layout, run.StorageFault(err)
	}
	layout, err = runtime.NewLayoutWith(dir, initFile, input)
	if err == nil && !runtime.IsRemote(s.machine.engine) {
		layout.OwnProject()
	}
	return layout, err
}

// spec returns the part of a spec that all sandboxes of a unit share.
func (s *starter) spec(u *unit.Unit, id string, image runtime.Image) runtime.Spec {
	return runtime.Spec{
		Run: id, Root: id, Unit: u.Name, Owner: s.machine.home.Owner, Mode: runtime.ModeOnce, Image: image,
		Network: cmp.Or(u.Policy.Network, "none"), ReadOnly: !u.Policy.Writable, Isolation: u.Policy.Isolation,
		Labels: s.machine.opts.Labels, Env: environment(u, image), Disks: s.machine.home.Disks,
	}
}

// start starts a sandbox. It bounds how many starts the engine has at once.
func (s *starter) start(
	ctx context.Context, spec runtime.Spec, layout runtime.Layout, log *runtime.Log,
) (*runtime.Sandbox, error) {
	if err := s.machine.confirm(ctx); err != nil {
		return nil, err
	}
	if err := acquire(ctx, s.starts); err != nil {
		return nil, err
	}
	defer s.starts.Release(1)
	spec.UID = s.machine.uidOf(ctx, cmp.Or(spec.Session, spec.Run))
	ctx, span := startSpan(ctx, "start")
	defer span.End()
	return runtime.Start(ctx, s.machine.engine, spec, layout, log)
}

// begin has the program of a container that was just started begin with its secrets, which the
// engine never hears of.
func (*starter) begin(ctx context.Context, sandbox *runtime.Sandbox, spec runtime.Spec, secrets []string) error {
	err := sandbox.Begin(ctx, spec, secrets)
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), runtime.ErrDetach):
		sandbox.Release()
		return errors.Join(runtime.ErrDetach, err)
	}
	return errors.Join(err, sandbox.Remove(ctx))
}

// startToEnd starts a container, and returns when it has ended and is removed and its log is
// complete.
func (s *starter) startToEnd(
	ctx context.Context, spec runtime.Spec, layout runtime.Layout, log *runtime.Log, timeout time.Duration,
) (runtime.End, error) {
	sandbox, err := s.start(ctx, spec, layout, log)
	if err != nil {
		return runtime.End{}, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, run.ErrTimeout)
	defer cancel()
	end, err := sandbox.Wait(limited)
	if err == nil && end.Early { // the rest of its log is to come
		_, _ = sandbox.AwaitExit(context.WithoutCancel(ctx)) // the program's end is known
	}
	return end, errors.Join(err, sandbox.Remove(ctx), endedByOthers(end))
}

// environment is what AOD tells a unit's program, then what the operator does.
func environment(u *unit.Unit, image runtime.Image) []string {
	env := slices.Clone(programEnv)
	if len(u.Policy.Egress) > 0 {
		env = append(env, proxyEnv...)
	}
	if len(u.Policy.Models) > 0 {
		env = append(env, unlessSet(modelEnv, image.Env)...)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Policy.Env)) {
		env = append(env, name+"="+u.Policy.Env[name])
	}
	return env
}

// unlessSet leaves out what an image sets itself.
func unlessSet(env, image []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(image, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	})
}

// modelEnv tells the usual clients of models where they are answered. The keys open nothing:
// clients refuse to start without one.
var modelEnv = []string{
	"OPENAI_BASE_URL=http://127.0.0.1:7070/v1", "OPENAI_API_BASE=http://127.0.0.1:7070/v1",
	"LITELLM_API_BASE=http://127.0.0.1:7070/v1", "OPENAI_API_KEY=aod",
	"ANTHROPIC_BASE_URL=http://127.0.0.1:7070", "ANTHROPIC_API_KEY=aod",
}

// proxyEnv tells the usual clients of HTTP that hosts are reached through the capsule API.
var proxyEnv = []string{
	"HTTPS_PROXY=http://127.0.0.1:7070", "HTTP_PROXY=http://127.0.0.1:7070",
	"https_proxy=http://127.0.0.1:7070", "http_proxy=http://127.0.0.1:7070",
	"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost", "NODE_USE_ENV_PROXY=1",
}

// programEnv tells the program where the capsule API is, and that AOD checks input and output
// against the contract outside of the container.
var programEnv = []string{
	"AOD_URL=http://127.0.0.1:7070", "AOD_SOCKET=/run/aod/aod.sock", "ORCHESTRATOR_URL=http://127.0.0.1:7070",
	"AOD_VALIDATES=1",
}

// noteStart records how long the start of a run's sandbox took.
func noteStart(r *run.Run, s *runtime.Sandbox) {
	took := s.Timings()
	r.Record.Timings.Create, r.Record.Timings.Start = run.Milliseconds(took.Create), run.Milliseconds(took.Start)
}

// tracer makes the spans of an attempt. They are dropped unless the program sets an exporter.
var tracer = otel.Tracer("github.com/agent-on-demand/aod/orchestrator/kind/container")

// startSpan starts a span below the one in ctx. What is done for no run, such as the start of
// a sandbox that is to wait, has no span.
func startSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	above := trace.SpanFromContext(ctx)
	if !above.SpanContext().IsValid() {
		return ctx, above
	}
	return tracer.Start(ctx, name)
}
