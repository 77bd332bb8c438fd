package container

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/images"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// The names of images. A tag is made of the image's content.
const capsuleRepository = "aod-capsule/"

// The labels of the images that AOD builds, beside the unit's.
const (
	labelContext = "aod.context" // digest of the build context
	labelBase    = "aod.base"    // digest of the base image's context
	// labelBuiltFor has the owner whose units the image is for, see run.Home.
	labelBuiltFor = "aod.built-for"
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
	if len(image.Entrypoint)+len(image.Cmd) == 0 && r.Unit.Kind != unit.Agent {
		return runtime.Image{}, fault.New(fault.Capsule, "the image of %q says no program to start", r.Unit.Name).
			WithHint("give its Dockerfile a CMD or an ENTRYPOINT, or build it FROM %s", images.BaseName)
	}
	return image, nil
}

// findImage returns the image of the unit, and remembers it for the unit's version. A unit
// that was read from a directory has no version and may have changed, so it is not remembered.
func (c *Containers) findImage(ctx context.Context, r *run.Run) (foundImage, error) {
	key := pool.Key(r.Unit)
	if found, ok := c.images.Load(key); ok && r.Unit.Version != "" {
		return found.(foundImage), nil
	}
	found, _, err := c.build(ctx, r.Unit, r.Built, r.Aside)
	if err == nil && r.Unit.Version != "" {
		c.images.Store(key, found)
	}
	return found, err
}

type foundImage struct {
	image runtime.Image
	ref   string
}

// Build returns the capsule's image, its reference, and whether it had to be built.
func (c *Containers) Build(
	ctx context.Context, u *unit.Unit, progress func(runtime.BuildEvent),
) (runtime.Image, string, bool, error) {
	found, built, err := c.build(ctx, u, progress, inPlace)
	return found.image, found.ref, built, err
}

// aside calls wait while whoever needs an image gives up what others may need meanwhile.
type aside func(ctx context.Context, wait func()) error

// inPlace is aside for those who have nothing to give up.
func inPlace(_ context.Context, wait func()) error {
	wait()
	return nil
}

// build returns the image of the unit. It has it built if the engine doesn't have it.
func (c *Containers) build(
	ctx context.Context, u *unit.Unit, progress func(runtime.BuildEvent), aside aside,
) (found foundImage, built bool, err error) {
	recipe, err := c.recipeOf(u)
	if err != nil {
		return foundImage{}, false, err
	}
	found.ref = recipe.Tag()
	c.asked.Store(found.ref, time.Now())
	found.image, err = c.engine.Image(ctx, found.ref)
	if err == nil {
		return found, false, c.checkSize(ctx, u, found)
	}
	if !fault.Is(err, fault.NotFound) {
		return found, false, fmt.Errorf("look up image: %w", err)
	}
	if u.Policy.Refusal != nil {
		return found, false, u.Policy.Refusal
	}
	var failed error
	err = aside(ctx, func() { found.image, failed = c.buildMissing(ctx, u, recipe, progress) })
	if err = cmp.Or(failed, err); err == nil {
		err = c.checkSize(ctx, u, found)
	}
	return found, true, err
}

// checkSize returns a fault if an image is larger than the unit's may be, and removes it.
func (c *Containers) checkSize(ctx context.Context, u *unit.Unit, found foundImage) error {
	refusal := u.RefuseImage(found.image.SizeBytes)
	if refusal != nil {
		found.image.Tags = []string{found.ref}
		c.removeImage(context.WithoutCancel(ctx), found.image)
	}
	return refusal
}

// buildMissing builds an image, and before that the base image if it stands on that.
func (c *Containers) buildMissing(
	ctx context.Context, u *unit.Unit, recipe runtime.Recipe, progress func(runtime.BuildEvent),
) (runtime.Image, error) {
	dir, err := capsuleOf(u)
	if err != nil {
		return runtime.Image{}, err
	}
	if err := c.Confined(ctx); err != nil {
		return runtime.Image{}, err
	}
	if err := c.room(ctx); err != nil {
		return runtime.Image{}, err
	}
	if dir.UsesBase() {
		if err := c.EnsureBase(ctx, progress); err != nil {
			return runtime.Image{}, err
		}
	}
	image, err := c.builds.join(ctx, recipe.Tag(), progress,
		func(ctx context.Context, tell func(runtime.BuildEvent)) (runtime.Image, error) {
			if image, err := c.engine.Image(ctx, recipe.Tag()); err == nil {
				return image, nil // another build made it meanwhile
			}
			if err := c.checkTriggers(ctx, u, dir); err != nil {
				return runtime.Image{}, err
			}
			return runtime.BuildImage(ctx, c.engine, recipe, tell)
		})
	return image, withoutNetwork(u, err)
}

// recipeOf returns the recipe of a unit's image. Its digest covers everything that goes into
// the image: the directory, and the base image of AOD if the Dockerfile builds on it.
func (c *Containers) recipeOf(u *unit.Unit) (runtime.Recipe, error) {
	dir, err := capsuleOf(u)
	if err != nil {
		return runtime.Recipe{}, err
	}
	context, err := dir.Context()
	if err != nil {
		return runtime.Recipe{}, err
	}
	labels := runtime.ImageLabels()
	labels[runtime.LabelUnit], labels[labelContext], labels[labelBase] = dir.Name, context.Digest, ""
	labels[labelBuiltFor] = c.home.Owner
	digest := context.Digest
	if dir.UsesBase() {
		labels[labelBase] = images.BaseDigest()
		sum := sha256.Sum256([]byte(digest + images.BaseDigest()))
		digest = hex.EncodeToString(sum[:])
	}
	recipe := runtime.Recipe{
		Name: capsuleRepository + dir.Name, Digest: digest, Labels: labels, WriteContext: context.WriteTar,
		Limits: c.buildLimits(u),
	}
	if image := namedImage(dir); image != "" {
		recipe.WriteContext = func(w io.Writer) error { return writeFrom(w, image) }
		recipe.Limits.Classic = recipe.Limits.Classic || isImageID(image)
	}
	return recipe, nil
}

// EnsureBase builds the base image of this version and points its short name to it. It pulls
// Debian if that is missing. Its steps are AOD's own, so they have the engine's network and no
// bound but the time of all builds.
func (c *Containers) EnsureBase(ctx context.Context, progress func(runtime.BuildEvent)) error {
	recipe := runtime.Recipe{
		Name: images.BaseName, Digest: images.BaseDigest(), AlsoTag: images.BaseName + ":latest",
		Labels: map[string]string{labelBase: images.BaseDigest()}, WriteContext: images.WriteBaseContext,
	}
	ready, err := c.baseReady(ctx, recipe)
	if err != nil || ready {
		return err
	}
	_, err = c.builds.join(ctx, recipe.Tag(), progress,
		func(ctx context.Context, tell func(runtime.BuildEvent)) (runtime.Image, error) {
			if err := c.ensureDebian(ctx); err != nil {
				return runtime.Image{}, err
			}
			return runtime.BuildImage(ctx, c.engine, recipe, tell)
		})
	if err != nil {
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
		return fault.Wrap(fault.Unavailable, err, "the base image needs %s, which is neither here nor to be pulled",
			images.BaseFrom).
			WithHint("without a registry, scripts/bootstrap-debian.sh makes it from Debian's packages (`make base` " +
				"does both)")
	}
	return nil
}

// newLayout makes an empty directory and lays it out for a sandbox of the image, whose input files
// lie in a directory of their own; "" is none. Files that an engine elsewhere gives back are put in their
// place, and so in no project.
func (c *Containers) newLayout(dir string, image runtime.Image, input string) (runtime.Layout, error) {
	layout := runtime.OpenLayout(dir, input)
	initFile, err := c.inits.Install(c.home.Bin, image.Arch) // from where runs can link to it
	if err != nil {
		return layout, err
	}
	if err := errors.Join(safefs.RemoveTree(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return layout, run.StorageFault(err)
	}
	layout, err = runtime.NewLayoutWith(dir, initFile, input)
	if err == nil && !runtime.IsRemote(c.engine) {
		layout.OwnProject()
	}
	return layout, err
}

// spec returns the part of a spec that all sandboxes of a unit share.
func (c *Containers) spec(u *unit.Unit, id string, image runtime.Image) runtime.Spec {
	return runtime.Spec{
		Run: id, Root: id, Unit: u.Name, Owner: c.home.Owner, Control: true, Image: image,
		Network: cmp.Or(u.Policy.Network, "none"), ReadOnly: !u.Policy.Writable, Isolation: u.Policy.Isolation,
		Labels: c.opts.Labels, Env: environment(u, image), Disks: c.home.Disks,
	}
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
