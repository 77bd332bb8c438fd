package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/images"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initbin"
)

// Images are named after what they hold.
const capsuleRepository = "aod-capsule/"

// The labels of the images that AOD builds, beside the unit's.
const (
	labelContext = "aod.context" // digest of the build context
	labelBase    = "aod.base"    // digest of the base image's context
)

// ensureImage returns the run's image and builds what is missing on the way.
func (o *Orchestrator) ensureImage(ctx context.Context, run *Run) (runtime.Image, error) {
	ctx, span := tracer.Start(ctx, "build")
	defer span.End()
	began := time.Now()
	found, err := o.findImage(ctx, run)
	run.record.Timings.Build = milliseconds(time.Since(began))
	if err != nil {
		return runtime.Image{}, err
	}
	image := found.image
	run.record.Image = api.ImageRef{Ref: found.ref, ID: image.ID}
	if len(image.Entrypoint)+len(image.Cmd) == 0 {
		return runtime.Image{}, fault.New(fault.Capsule, "the image of %q says no program to start", run.req.Capsule.Name).
			WithHint("give its Dockerfile a CMD or an ENTRYPOINT, or build it FROM %s", images.BaseName)
	}
	return image, nil
}

func (o *Orchestrator) findImage(ctx context.Context, run *Run) (foundImage, error) {
	find := func() (foundImage, error) {
		image, ref, _, err := o.Build(ctx, run.req.Capsule, run.built)
		return foundImage{image: image, ref: ref}, err
	}
	if o.images == nil {
		return find()
	}
	return o.images.get(ctx, run.imageKey(), find)
}

// imageKey names the unit's content for the cache and the pool.
func (r *Run) imageKey() string { return imageKey(r.record.Unit, r.record.Version) }

func imageKey(unit, version string) string { return unit + "@" + version }

// Build returns the capsule's image, its reference, and whether it had to be built.
func (o *Orchestrator) Build(ctx context.Context, c *capsule.Capsule, progress func(runtime.BuildEvent)) (runtime.Image, string, bool, error) {
	recipe, err := recipeOf(c)
	if err != nil {
		return runtime.Image{}, "", false, err
	}
	ref := recipe.Tag()
	image, err := o.engine.Image(ctx, ref)
	if err == nil {
		return image, ref, false, nil
	}
	if !fault.Is(err, fault.NotFound) {
		return runtime.Image{}, ref, false, fmt.Errorf("look up image: %w", err)
	}
	if c.UsesBase() {
		if err := o.EnsureBase(ctx, progress); err != nil {
			return runtime.Image{}, ref, false, err
		}
	}
	image, err = runtime.BuildImage(ctx, o.engine, recipe, progress)
	return image, ref, true, err
}

// recipeOf names a capsule's image after all that goes into it: its directory, and
// our base image where the Dockerfile builds on it.
func recipeOf(c *capsule.Capsule) (runtime.Recipe, error) {
	if c.Kind == capsule.KindRemote {
		return runtime.Recipe{}, fault.New(fault.Input, "%q has no image: its agent is elsewhere", c.Name)
	}
	context, err := c.Context()
	if err != nil {
		return runtime.Recipe{}, err
	}
	labels := map[string]string{runtime.LabelUnit: c.Name, labelContext: context.Digest}
	digest := context.Digest
	if c.UsesBase() {
		labels[labelBase] = images.BaseDigest()
		sum := sha256.Sum256([]byte(digest + images.BaseDigest()))
		digest = hex.EncodeToString(sum[:])
	}
	return runtime.Recipe{
		Name: capsuleRepository + c.Name, Digest: digest, Labels: labels, WriteContext: context.WriteTar,
	}, nil
}

// EnsureBase makes the base image of this version and lets its short name point to
// it. Debian below it is pulled where it isn't there.
func (o *Orchestrator) EnsureBase(ctx context.Context, progress func(runtime.BuildEvent)) error {
	recipe := runtime.Recipe{
		Name: images.BaseName, Digest: images.BaseDigest(), AlsoTag: images.BaseName + ":latest",
		Labels: map[string]string{labelBase: images.BaseDigest()}, WriteContext: images.WriteBaseContext,
	}
	ready, err := o.baseReady(ctx, recipe)
	if err != nil || ready {
		return err
	}
	if err := o.ensureDebian(ctx); err != nil {
		return err
	}
	if _, err := runtime.BuildImage(ctx, o.engine, recipe, progress); err != nil {
		return fmt.Errorf("base image: %w", err)
	}
	return nil
}

// baseReady reports whether the short name stands for this version's base image.
func (o *Orchestrator) baseReady(ctx context.Context, recipe runtime.Recipe) (bool, error) {
	ours, err := o.engine.Image(ctx, recipe.Tag())
	if err == nil {
		var latest runtime.Image
		latest, err = o.engine.Image(ctx, recipe.AlsoTag)
		if err == nil {
			return latest.ID == ours.ID, nil
		}
	}
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return false, fmt.Errorf("look up base image: %w", err)
}

func (o *Orchestrator) ensureDebian(ctx context.Context) error {
	_, err := o.engine.Image(ctx, images.BaseFrom)
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	if err := o.engine.Pull(ctx, images.BaseFrom); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the base image needs %s, which is neither here nor to be pulled", images.BaseFrom).
			WithHint("without a registry, scripts/bootstrap-debian.sh makes it from Debian's packages (`make base` does both)")
	}
	return nil
}

// initFile returns the sandbox's init for the image's architecture, installed where
// runs can link to it.
func (o *Orchestrator) initFile(arch string) (string, error) {
	return initbin.Install(o.bin, arch)
}
