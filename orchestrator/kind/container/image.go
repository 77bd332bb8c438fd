package container

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/images"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/unit"
)

// Images are named after what they hold.
const capsuleRepository = "aod-capsule/"

// The labels of the images that AOD builds, beside the unit's.
const (
	labelContext = "aod.context" // digest of the build context
	labelBase    = "aod.base"    // digest of the base image's context
)

// ensureImage returns the run's image and builds what is missing on the way.
func (c *Containers) ensureImage(ctx context.Context, r *run.Run) (runtime.Image, error) {
	ctx, span := tracer.Start(ctx, "build")
	defer span.End()
	began := time.Now()
	found, err := c.findImage(ctx, r)
	r.Record.Timings.Build = run.Milliseconds(time.Since(began))
	if err != nil {
		return runtime.Image{}, err
	}
	image := found.image
	r.Record.Image = api.ImageRef{Ref: found.ref, ID: image.ID}
	if len(image.Entrypoint)+len(image.Cmd) == 0 {
		return runtime.Image{}, fault.New(fault.Capsule, "the image of %q says no program to start", r.Unit.Name).
			WithHint("give its Dockerfile a CMD or an ENTRYPOINT, or build it FROM %s", images.BaseName)
	}
	return image, nil
}

// findImage asks the engine nothing that it has answered for this version of the unit. One
// that was read from a directory alone has no version, and may have changed.
func (c *Containers) findImage(ctx context.Context, r *run.Run) (foundImage, error) {
	find := func() (foundImage, error) {
		image, ref, _, err := c.Build(ctx, r.Unit, r.Built)
		return foundImage{image: image, ref: ref}, err
	}
	if r.Unit.Version == "" {
		return find()
	}
	return c.images.get(ctx, pool.Key(r.Unit), find)
}

// Build returns the capsule's image, its reference, and whether it had to be built.
func (c *Containers) Build(ctx context.Context, u *unit.Unit, progress func(runtime.BuildEvent)) (runtime.Image, string, bool, error) {
	recipe, err := recipeOf(u)
	if err != nil {
		return runtime.Image{}, "", false, err
	}
	dir, err := capsuleOf(u)
	if err != nil {
		return runtime.Image{}, "", false, err
	}
	ref := recipe.Tag()
	image, err := c.engine.Image(ctx, ref)
	if err == nil {
		return image, ref, false, nil
	}
	if !fault.Is(err, fault.NotFound) {
		return runtime.Image{}, ref, false, fmt.Errorf("look up image: %w", err)
	}
	if dir.UsesBase() {
		if err := c.EnsureBase(ctx, progress); err != nil {
			return runtime.Image{}, ref, false, err
		}
	}
	image, err = runtime.BuildImage(ctx, c.engine, recipe, progress)
	return image, ref, true, err
}

// recipeOf names a capsule's image after all that goes into it: its directory, and
// our base image where the Dockerfile builds on it.
func recipeOf(u *unit.Unit) (runtime.Recipe, error) {
	c, err := capsuleOf(u)
	if err != nil {
		return runtime.Recipe{}, err
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
func (c *Containers) EnsureBase(ctx context.Context, progress func(runtime.BuildEvent)) error {
	recipe := runtime.Recipe{
		Name: images.BaseName, Digest: images.BaseDigest(), AlsoTag: images.BaseName + ":latest",
		Labels: map[string]string{labelBase: images.BaseDigest()}, WriteContext: images.WriteBaseContext,
	}
	ready, err := c.baseReady(ctx, recipe)
	if err != nil || ready {
		return err
	}
	if err := c.ensureDebian(ctx); err != nil {
		return err
	}
	if _, err := runtime.BuildImage(ctx, c.engine, recipe, progress); err != nil {
		return fmt.Errorf("base image: %w", err)
	}
	return nil
}

// baseReady reports whether the short name stands for this version's base image.
func (c *Containers) baseReady(ctx context.Context, recipe runtime.Recipe) (bool, error) {
	ours, err := c.engine.Image(ctx, recipe.Tag())
	if err == nil {
		var latest runtime.Image
		latest, err = c.engine.Image(ctx, recipe.AlsoTag)
		if err == nil {
			return latest.ID == ours.ID, nil
		}
	}
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return false, fmt.Errorf("look up base image: %w", err)
}

func (c *Containers) ensureDebian(ctx context.Context) error {
	_, err := c.engine.Image(ctx, images.BaseFrom)
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	if err := c.engine.Pull(ctx, images.BaseFrom); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the base image needs %s, which is neither here nor to be pulled", images.BaseFrom).
			WithHint("without a registry, scripts/bootstrap-debian.sh makes it from Debian's packages (`make base` does both)")
	}
	return nil
}

// initFile returns the sandbox's init for the image's architecture, installed where
// runs can link to it.
func (c *Containers) initFile(arch string) (string, error) {
	return c.inits.Install(c.home.Bin, arch)
}

// spec is what the sandboxes of a unit have in common.
func (c *Containers) spec(u *unit.Unit, id string, image runtime.Image) runtime.Spec {
	spec := runtime.Spec{
		Run: id, Root: id, Unit: u.Name, Owner: c.home.Owner, Control: true, Image: image,
		Network: "none", ReadOnly: true, Labels: c.opts.Labels, Env: programEnv,
	}
	if dir, err := capsuleOf(u); err == nil {
		spec.Network, spec.ReadOnly, spec.Isolation = dir.Agent.Network, dir.Agent.ReadOnly, dir.Agent.Runtime
	}
	return spec
}

// programEnv says where the capsule API is (DESIGN: the capsule API), and that input and
// output are held against the contract outside of the container, whoever does it in there.
var programEnv = []string{
	"AOD_URL=http://127.0.0.1:7070", "AOD_SOCKET=/run/aod/aod.sock", "ORCHESTRATOR_URL=http://127.0.0.1:7070",
	"AOD_VALIDATES=1",
}
