package container

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/images"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/unit"
)

// The names of images. A tag is made of the image's content.
const capsuleRepository = "aod-capsule/"

// The labels of the images that AOD builds, beside the unit's.
const (
	labelContext = "aod.context" // digest of the build context
	labelBase    = "aod.base"    // digest of the base image's context
)

// ensureImage returns the run's image, and builds it if it is missing.
func (c *Containers) ensureImage(ctx context.Context, r *run.Run) (runtime.Image, error) {
	ctx, span := startSpan(ctx, "build")
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

// findImage returns the image of the unit, and remembers it for the unit's version. A unit
// that was read from a directory has no version and may have changed, so it is not remembered.
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

// recipeOf returns the recipe of a unit's image. Its digest covers everything that goes into
// the image: the directory, and the base image of AOD if the Dockerfile builds on it.
func recipeOf(u *unit.Unit) (runtime.Recipe, error) {
	c, err := capsuleOf(u)
	if err != nil {
		return runtime.Recipe{}, err
	}
	context, err := c.Context()
	if err != nil {
		return runtime.Recipe{}, err
	}
	labels := runtime.ImageLabels()
	labels[runtime.LabelUnit], labels[labelContext], labels[labelBase] = c.Name, context.Digest, ""
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

// EnsureBase builds the base image of this version and points its short name to it. It pulls
// Debian if that is missing.
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

// baseReady reports whether the short name points to this version's base image.
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

// initFile returns the path of the init for an architecture, in a directory from which runs
// can link to it.
func (c *Containers) initFile(arch string) (string, error) {
	return c.inits.Install(c.home.Bin, arch)
}

// spec returns the part of a spec that all sandboxes of a unit share.
func (c *Containers) spec(u *unit.Unit, id string, image runtime.Image) runtime.Spec {
	return runtime.Spec{
		Run: id, Root: id, Unit: u.Name, Owner: c.home.Owner, Control: true, Image: image,
		Network: cmp.Or(u.Policy.Network, "none"), ReadOnly: !u.Policy.Writable, Isolation: u.Policy.Isolation,
		Labels: c.opts.Labels, Env: environment(u),
	}
}

// environment is what AOD tells a unit's program, then what the operator does.
func environment(u *unit.Unit) []string {
	env := slices.Clone(programEnv)
	for _, name := range slices.Sorted(maps.Keys(u.Policy.Env)) {
		env = append(env, name+"="+u.Policy.Env[name])
	}
	return env
}

// programEnv tells the program where the capsule API is, and that AOD checks input and output
// against the contract outside of the container.
var programEnv = []string{
	"AOD_URL=http://127.0.0.1:7070", "AOD_SOCKET=/run/aod/aod.sock", "ORCHESTRATOR_URL=http://127.0.0.1:7070",
	"AOD_VALIDATES=1",
}
