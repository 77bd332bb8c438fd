package container

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/images"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// ImageSource is where images come from that an engine lacks: a worker's server, say. It is asked before any registry.
type ImageSource interface {
	// Bring has the engine get an image by its reference, and by a second one that isn't "". An image that is there
	// already gets the second one. The error says why it can't.
	Bring(ctx context.Context, ref, also string) error
}

// What others see that a run waits for, while it has no image.
const (
	waitsForImage = "image"
	buildsImage   = "its image is being built"
	fetchesImage  = "its base image is fetched from the server"
)

// stepFetch begins the ids of steps that bring an image.
const stepFetch = "fetch "

// telling passes the steps of a build on to the run that waits for it.
func telling(r *run.Run) func(runtime.BuildEvent) {
	return func(e runtime.BuildEvent) {
		if strings.HasPrefix(e.Step, stepFetch) {
			message := buildsImage
			if e.State == runtime.StepStarted {
				message = fetchesImage
			}
			r.WaitFor(waitsForImage, message)
		}
		r.Built(e)
	}
}

// bringBase brings the base image, and reports whether it is there then; else what it is built upon.
func (b *imageBuilder) bringBase(
	ctx context.Context, recipe runtime.Recipe, progress func(runtime.BuildEvent),
) (ready bool, err error) {
	if b.machine.opts.Images == nil {
		return false, nil
	}
	if err := b.bring(ctx, recipe.Tag(), recipe.AlsoTag, progress); err != nil {
		return false, err
	}
	if ready, err := b.baseReady(ctx, recipe); err != nil || ready {
		return ready, err
	}
	return false, b.bringMissing(ctx, []string{images.BaseFrom}, progress)
}

// bringMissing brings those of some images that the engine lacks.
func (b *imageBuilder) bringMissing(
	ctx context.Context, refs []string, progress func(runtime.BuildEvent),
) error {
	if b.machine.opts.Images == nil {
		return nil
	}
	for _, ref := range refs {
		_, err := b.machine.engine.Image(ctx, ref)
		if fault.Is(err, fault.NotFound) {
			err = b.bring(ctx, ref, "", progress)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bring brings an image, once for all who want it, as a build of its own. That the source doesn't have it is no error:
// a registry is asked next.
func (b *imageBuilder) bring(ctx context.Context, ref, also string, progress func(runtime.BuildEvent)) error {
	step := runtime.BuildEvent{Step: stepFetch + ref, Name: "[fetch] " + ref, State: runtime.StepStarted}
	progress(step)
	_, err := b.builds.join(ctx, step.Step, progress,
		func(ctx context.Context, _ func(runtime.BuildEvent)) (image runtime.Image, err error) {
			err = b.machine.opts.Images.Bring(ctx, ref, also)
			switch {
			case ctx.Err() != nil:
				return image, context.Cause(ctx)
			case err == nil || errors.Is(err, runtime.ErrUnreachable):
				return image, err
			}
			b.machine.logger.Info("image not fetched", "image", ref, fault.LogAttr(err))
			return image, nil
		})
	if step.State = runtime.StepDone; err != nil {
		step.State = runtime.StepFailed
	}
	progress(step)
	return err
}

// withoutBase explains the failure of a build that lacks an image, where one could have come from a source.
func (b *imageBuilder) withoutBase(err error) error {
	if b.machine.opts.Images == nil || !errors.Is(err, runtime.ErrNoBase) {
		return err
	}
	return fault.Wrap(fault.Build, err, "%s; the server of this worker doesn't give it either", fault.Public(err).Msg).
		WithHint("check the name after FROM; build or load the image at the server, whose workers fetch it " +
			"(`docker load`), or on the worker's machine, or give the engine there a way to its registry")
}
