package container

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/images"
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

// imageBuilder has the images of units, and builds those that are missing.
//
// builds.join builds an image once for all who want it, while the run lends its slot; imageBuilder.checkTriggers
// refuses base images that fetch. Under --watch, imageBuilder.forAttempt takes an earlier image and a patch.
type imageBuilder struct {
	machine *machine
	builds  *builds
	known   sync.Map // of foundImage, by unit and version, so that a run needn't ask the engine again
	// by reference, when this process was asked for an image: an upload has its image before it is a unit
	asked sync.Map
}

type foundImage struct {
	image runtime.Image
	ref   string
}

// forAttempt returns the image for an attempt: that of an earlier state of the unit and what it
// lacks, or the unit's own.
func (b *imageBuilder) forAttempt(ctx context.Context, r *run.Run) (runtime.Image, *patch, error) {
	patches := b.machine.opts.Patches
	c, err := capsuleOf(r.Unit)
	// whose card is known by the image
	if patches == nil || err != nil || r.Unit.Version != "" || isAgenticUnit(r.Unit) {
		image, err := b.ensure(ctx, r)
		return image, nil, err
	}
	began := time.Now()
	context, err := c.Context()
	if err != nil {
		return runtime.Image{}, nil, err
	}
	files, err := contextFiles(context)
	if err != nil {
		return runtime.Image{}, nil, err
	}
	image, ref, lacks := patches.find(c, context, files)
	if lacks != nil {
		r.Record.Image = api.ImageRef{Ref: ref, ID: image.ID}
		r.Record.Timings.Build = run.Milliseconds(time.Since(began))
		return image, lacks, nil
	}
	if image, err = b.ensure(ctx, r); err == nil {
		patches.remember(r.Unit.Name, builtImage{
			ref: r.Record.Image.Ref, image: image, digest: context.Digest,
			files: files,
		})
	}
	return image, nil, err
}

// ensure returns the run's image, and builds it if it is missing.
func (b *imageBuilder) ensure(ctx context.Context, r *run.Run) (runtime.Image, error) {
	ctx, span := startSpan(ctx, "build")
	defer span.End()
	began := time.Now()
	found, err := b.find(ctx, r)
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

// find returns the image of the unit, and remembers it for the unit's version. A unit
// that was read from a directory has no version and may have changed, so it is not remembered.
func (b *imageBuilder) find(ctx context.Context, r *run.Run) (foundImage, error) {
	key := pool.Key(r.Unit)
	if found, ok := b.known.Load(key); ok && r.Unit.Version != "" {
		return found.(foundImage), nil
	}
	found, _, err := b.build(ctx, r.Unit, telling(r), func(ctx context.Context, wait func()) error {
		return r.Aside(ctx, func() {
			defer r.WaitFor(waitsForImage, buildsImage)()
			wait()
		})
	})
	if err == nil && r.Unit.Version != "" {
		b.known.Store(key, found)
	}
	return found, err
}

// forget has the engine asked again for the image of a unit, which somebody removed.
func (b *imageBuilder) forget(u *unit.Unit) { b.known.Delete(pool.Key(u)) }

// yieldSlot calls wait while whoever needs an image gives up what others may need meanwhile.
type yieldSlot func(ctx context.Context, wait func()) error

// inPlace is aside for those who have nothing to give up.
func inPlace(_ context.Context, wait func()) error {
	wait()
	return nil
}

// build returns the image of the unit. It has it built if the engine doesn't have it.
func (b *imageBuilder) build(
	ctx context.Context, u *unit.Unit, progress func(runtime.BuildEvent), aside yieldSlot,
) (found foundImage, built bool, err error) {
	recipe, err := b.recipeOf(u)
	if err != nil {
		return foundImage{}, false, err
	}
	found.ref = recipe.Tag()
	b.asked.Store(found.ref, time.Now())
	found.image, err = b.machine.engine.Image(ctx, found.ref)
	if err == nil {
		return found, false, b.checkSize(ctx, u, found)
	}
	if !fault.Is(err, fault.NotFound) {
		return found, false, fmt.Errorf("look up image: %w", err)
	}
	if u.Policy.Refusal != nil {
		return found, false, u.Policy.Refusal
	}
	var failed error
	err = aside(ctx, func() { found.image, failed = b.buildMissing(ctx, u, recipe, progress) })
	if err = cmp.Or(failed, err); err == nil {
		err = b.checkSize(ctx, u, found)
	}
	return found, true, err
}

// checkSize returns a fault if an image is larger than the unit's may be, and removes it.
func (b *imageBuilder) checkSize(ctx context.Context, u *unit.Unit, found foundImage) error {
	refusal := u.RefuseImage(found.image.SizeBytes)
	if refusal != nil {
		found.image.Tags = []string{found.ref}
		b.remove(context.WithoutCancel(ctx), found.image)
	}
	return refusal
}

// buildMissing builds an image, and before that the base image if it stands on that.
func (b *imageBuilder) buildMissing(
	ctx context.Context, u *unit.Unit, recipe runtime.Recipe, progress func(runtime.BuildEvent),
) (runtime.Image, error) {
	dir, err := capsuleOf(u)
	if err != nil {
		return runtime.Image{}, err
	}
	if err := b.machine.confirm(ctx); err != nil {
		return runtime.Image{}, err
	}
	if err := b.machine.room(ctx); err != nil {
		return runtime.Image{}, err
	}
	if dir.UsesBase() {
		if err := b.ensureBase(ctx, progress); err != nil {
			return runtime.Image{}, err
		}
	}
	if err := b.bringMissing(ctx, dir.Images(), progress); err != nil {
		return runtime.Image{}, err
	}
	image, err := b.builds.join(ctx, recipe.Tag(), progress,
		func(ctx context.Context, tell func(runtime.BuildEvent)) (runtime.Image, error) {
			if image, err := b.machine.engine.Image(ctx, recipe.Tag()); err == nil {
				return image, nil // another build made it meanwhile
			}
			if err := b.checkTriggers(ctx, u, dir); err != nil {
				return runtime.Image{}, err
			}
			return b.buildAsWritten(ctx, recipe, tell)
		})
	return image, b.withoutBase(withoutNetwork(u, err))
}

// buildAsWritten builds a unit's image, and tells of it in the words of its Dockerfile.
func (b *imageBuilder) buildAsWritten(
	ctx context.Context, recipe runtime.Recipe, tell func(runtime.BuildEvent),
) (runtime.Image, error) {
	image, err := runtime.BuildImage(ctx, b.machine.engine, recipe, func(e runtime.BuildEvent) {
		e.Name = capsule.AsWritten(e.Name)
		tell(e)
	})
	var failed *fault.Error
	if !errors.As(err, &failed) || capsule.AsWritten(failed.Msg) == failed.Msg {
		return image, err
	}
	written := *failed // others may have the same error
	written.Msg = capsule.AsWritten(failed.Msg)
	return image, &written
}

// recipeOf returns the recipe of a unit's image. Its digest covers everything that goes into
// the image: the directory, and the base image of AOD if the Dockerfile builds on it.
func (b *imageBuilder) recipeOf(u *unit.Unit) (runtime.Recipe, error) {
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
	labels[labelBuiltFor] = b.machine.home.Owner
	digest := context.Digest
	if dir.UsesBase() {
		labels[labelBase] = images.BaseDigest()
		sum := sha256.Sum256([]byte(digest + images.BaseDigest()))
		digest = hex.EncodeToString(sum[:])
	}
	if context.Hides() { // earlier versions put into the image what .dockerignore leaves out
		sum := sha256.Sum256([]byte(digest + "hidden"))
		digest = hex.EncodeToString(sum[:])
	}
	recipe := runtime.Recipe{
		Name: capsuleRepository + dir.Name, Digest: digest, Labels: labels, WriteContext: context.WriteBuild,
		Limits: b.limits(u),
	}
	if image := namedImage(dir); image != "" {
		recipe.WriteContext = func(w io.Writer) error { return writeFrom(w, image) }
		recipe.Limits.Classic = recipe.Limits.Classic || isImageID(image)
	}
	return recipe, nil
}

// limits are what the build of a unit's image may reach and take. An upload is built by
// the classic builder where memory is bounded: BuildKit doesn't keep that.
func (b *imageBuilder) limits(u *unit.Unit) runtime.BuildLimits {
	limits := runtime.BuildLimits{MemoryBytes: b.machine.opts.Builds.MemoryBytes, CPUs: b.machine.opts.Builds.CPUs}
	if u.Policy.Bounds.NetworkOfBuilds() == unit.NoNetwork {
		limits.Network = unit.NoNetwork
	}
	limits.Classic = u.Source == unit.FromUpload && limits.MemoryBytes > 0
	return limits
}

// withoutNetwork explains the failure of a build that lacked the network, by what would give
// it one.
func withoutNetwork(u *unit.Unit, err error) error {
	if !errors.Is(err, runtime.ErrBuildNetwork) {
		return err
	}
	return fault.Wrap(fault.Build, err, "%s", fault.Public(err).Msg).
		WithHint("builds have no network here; the operator can allow it in the server's file: %s",
			u.Policy.Bounds.AllowingNetwork(u.Name))
}

// checkTriggers returns a fault if a base image of the unit makes the build fetch what the unit's
// policy doesn't allow (ONBUILD). The builder would pull a missing base image: it is pulled
// before that, to be looked at.
func (b *imageBuilder) checkTriggers(ctx context.Context, u *unit.Unit, dir *capsule.Capsule) error {
	if !u.Policy.Bounds.NoFetch {
		return nil
	}
	for _, name := range dir.Bases() {
		base, err := b.machine.engine.Image(ctx, name)
		if fault.Is(err, fault.NotFound) && !dir.IsStage(name) && b.machine.engine.Pull(ctx, name) == nil {
			base, err = b.machine.engine.Image(ctx, name)
		}
		if errors.Is(err, runtime.ErrUnreachable) {
			return err
		}
		if err != nil {
			continue // the builder says what is wrong with it
		}
		for _, trigger := range base.OnBuild {
			if found := capsule.TriggerFetches(trigger); found != "" {
				return u.RefuseFetch(fmt.Sprintf("that its base image %s fetches from elsewhere: ONBUILD %s", name,
					found))
			}
		}
	}
	return nil
}

// remove removes an image with its tags, and reports whether it is gone. The engine keeps
// one that a container has.
func (b *imageBuilder) remove(ctx context.Context, image runtime.Image) bool {
	names := image.Tags
	if len(names) == 0 {
		names = []string{image.ID}
	}
	for _, name := range names {
		if err := b.machine.engine.RemoveImage(ctx, name); err != nil {
			b.machine.logger.Warn("image not removed", "image", name, fault.LogAttr(err))
			return false
		}
		for key, found := range b.known.Range {
			if found.(foundImage).ref == name {
				b.known.Delete(key)
			}
		}
	}
	return true
}

// ensureBase builds the base image of this version and points its short name to it. It pulls
// Debian if that is missing. Its steps are AOD's own, so they have the engine's network and no
// bound but the time of all builds.
func (b *imageBuilder) ensureBase(ctx context.Context, progress func(runtime.BuildEvent)) error {
	recipe := runtime.Recipe{
		Name: images.BaseName, Digest: images.BaseDigest(), AlsoTag: images.BaseLatest,
		Labels: map[string]string{labelBase: images.BaseDigest()}, WriteContext: images.WriteBaseContext,
	}
	ready, err := b.baseReady(ctx, recipe)
	if err == nil && !ready {
		ready, err = b.bringBase(ctx, recipe, progress)
	}
	if err != nil || ready {
		return err
	}
	_, err = b.builds.join(ctx, recipe.Tag(), progress,
		func(ctx context.Context, tell func(runtime.BuildEvent)) (runtime.Image, error) {
			if err := b.ensureDebian(ctx); err != nil {
				return runtime.Image{}, err
			}
			return runtime.BuildImage(ctx, b.machine.engine, recipe, tell)
		})
	if err != nil {
		return fmt.Errorf("base image: %w", err)
	}
	return nil
}

// baseReady reports whether the short name points to this version's base image.
func (b *imageBuilder) baseReady(ctx context.Context, recipe runtime.Recipe) (bool, error) {
	ours, err := b.machine.engine.Image(ctx, recipe.Tag())
	if err == nil {
		var latest runtime.Image
		latest, err = b.machine.engine.Image(ctx, recipe.AlsoTag)
		if err == nil {
			return latest.ID == ours.ID, nil
		}
	}
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return false, fmt.Errorf("look up base image: %w", err)
}

func (b *imageBuilder) ensureDebian(ctx context.Context) error {
	_, err := b.machine.engine.Image(ctx, images.BaseFrom)
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	if err := b.machine.engine.Pull(ctx, images.BaseFrom); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the base image needs %s, which is neither here nor to be pulled",
			images.BaseFrom).
			WithHint("without a registry, scripts/bootstrap-debian.sh makes it from Debian's packages (`make base` " +
				"does both)")
	}
	return nil
}

// namedImage returns the image that a directory of a wrapped agent names; "": it has a
// Dockerfile.
func namedImage(c *capsule.Capsule) string {
	if c.Wrapped == nil {
		return ""
	}
	return c.Wrapped.Image
}

// isImageID reports whether a reference is the id of an image of this engine. BuildKit takes it
// for a name.
func isImageID(image string) bool { return strings.HasPrefix(image, "sha256:") }

// writeFrom writes a build context that makes an image of ours of one that there is. The tag
// has the digest of the unit's directory, so that a version of a unit stays with the image that
// it began with, whatever becomes of the reference.
func writeFrom(w io.Writer, image string) error {
	dockerfile := []byte("FROM " + image + "\n")
	t := tar.NewWriter(w)
	err := t.WriteHeader(&tar.Header{
		Name: "Dockerfile", Typeflag: tar.TypeReg, Mode: 0o644,
		Size: int64(len(dockerfile)), ModTime: time.Unix(0, 0),
	})
	if err == nil {
		_, err = t.Write(dockerfile)
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return fault.Wrap(fault.Internal, err, "the build context could not be sent")
	}
	return nil
}
