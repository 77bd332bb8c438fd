package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/versions"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/runtime"
)

// reference is what may stand in an API path as an image. The client puts it there
// unescaped, so "../" or "?" would become another call. Its length isn't part of the pattern, which
// would take a millisecond of each start of AOD to compile.
var reference = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)

const longestReference = 512

func checkReference(ref string) error {
	if len(ref) <= longestReference && reference().MatchString(ref) && !strings.Contains(ref, "..") {
		return nil
	}
	return fault.New(fault.NotFound, "%q isn't an image reference", bounded(ref, 80))
}

// Image returns an image by reference or id.
func (e *Engine) Image(ctx context.Context, ref string) (runtime.Image, error) {
	if err := checkReference(ref); err != nil {
		return runtime.Image{}, err
	}
	found, err := e.cli.ImageInspect(ctx, ref)
	if err != nil {
		return runtime.Image{}, e.faultOf(ctx, call{"inspect", "image", ref}, err)
	}
	img := runtime.Image{
		ID: found.ID, Tags: found.RepoTags, OS: found.Os, Arch: found.Architecture, SizeBytes: found.Size,
	}
	if c := found.Config; c != nil {
		img.Entrypoint, img.Cmd, img.Env = c.Entrypoint, c.Cmd, c.Env
		img.WorkingDir, img.Labels, img.OnBuild = c.WorkingDir, c.Labels, c.OnBuild
		img.Volumes = slices.Sorted(maps.Keys(c.Volumes))
	}
	return img, nil
}

// Pull fetches an image as anybody may; it knows no registry passwords.
func (e *Engine) Pull(ctx context.Context, ref string) error {
	if err := checkReference(ref); err != nil {
		return err
	}
	asked := call{"pull", "image", ref}
	body, err := e.cli.ImagePull(ctx, ref, image.PullOptions{})
	if err == nil {
		defer body.Close()
		err = drainPull(body)
	}
	if err != nil && ctx.Err() == nil && registryUnreachable(err.Error()) {
		return fault.Wrap(fault.Unavailable, err, "no registry could be reached for %s", asked).
			WithHint("check the engine's way to the network, or load the image with `docker load`")
	}
	return e.faultOf(ctx, asked, err)
}

// drainPull reads the progress to its end: the pull stops when nobody does.
func drainPull(r io.Reader) error {
	messages := newMessages(r)
	for {
		var m struct{ Error string }
		err := messages.next(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Error != "":
			return errors.New(m.Error)
		}
	}
}

// registryUnreachable reports that an error is about the way to a registry and not
// about what the registry said.
func registryUnreachable(text string) bool {
	for _, sign := range []string{
		"dial tcp", "no such host", "i/o timeout", "proxyconnect", "TLS handshake",
		"Client.Timeout", "network is unreachable", "connection reset",
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// RemoveImage removes a reference; one that isn't there is no error.
func (e *Engine) RemoveImage(ctx context.Context, ref string) error {
	if err := checkReference(ref); err != nil {
		return err
	}
	_, err := e.cli.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return e.faultOf(ctx, call{"remove", "image", ref}, err)
}

// ImagesByLabel lists the images that carry all the labels. Only ID, Tags, Labels and
// SizeBytes are told: the rest would take a call for each.
func (e *Engine) ImagesByLabel(ctx context.Context, labels map[string]string) ([]runtime.Image, error) {
	found, err := e.cli.ImageList(ctx, image.ListOptions{Filters: labelFilter(labels)})
	if err != nil {
		return nil, e.faultOf(ctx, call{"list", "images", ""}, err)
	}
	images := make([]runtime.Image, 0, len(found))
	for _, s := range found {
		// as engines before 1.43 say "no tag"
		tags := slices.DeleteFunc(s.RepoTags, func(tag string) bool { return tag == "<none>:<none>" })
		images = append(images, runtime.Image{ID: s.ID, Tags: tags, Labels: s.Labels, SizeBytes: s.Size})
	}
	return images, nil
}

// Carrier brings images of this engine to others, and takes theirs.
func (e *Engine) Carrier() runtime.ImageCarrier { return carrier{e} }

// messageLimit bounds one message of a progress stream.
const messageLimit = 16 << 20

// messages reads a stream of JSON objects, each of bounded size.
type messages struct {
	decoder *json.Decoder
	limit   *io.LimitedReader
}

func newMessages(r io.Reader) *messages {
	limit := &io.LimitedReader{R: r, N: messageLimit}
	return &messages{decoder: json.NewDecoder(limit), limit: limit}
}

// next decodes one message. The stream ends with io.EOF.
func (m *messages) next(into any) error {
	m.limit.N = messageLimit
	err := m.decoder.Decode(into)
	if err != nil && m.limit.N <= 0 {
		return errors.New("a message of the engine is too long")
	}
	return err
}

// Build makes an image with BuildKit, or with the classic builder where the engine
// has no other. The end of ctx ends the build on the engine too.
//
// A failed classic build leaves the layers that it finished as untagged images, as
// it does for `docker build`: they are its cache, and the next attempt starts there.
func (e *Engine) Build(ctx context.Context, spec runtime.BuildSpec, progress func(runtime.BuildEvent)) (string, error) {
	if progress == nil {
		progress = func(runtime.BuildEvent) {}
	}
	b := building{engine: e, spec: spec, progress: progress}
	if !spec.Limits.Classic && !e.classicOnly.Load() && e.hasBuildKitAPI(ctx) {
		id, err := b.with(ctx, build.BuilderBuildKit)
		if !errors.Is(err, errNoBuildKit) {
			return id, err
		}
		e.classicOnly.Store(true)
	}
	return b.classic(ctx)
}

func (e *Engine) hasBuildKitAPI(ctx context.Context) bool {
	_ = e.cli.NewVersionError(ctx, "1.0", "") // negotiates, once
	return versions.GreaterThanOrEqualTo(e.cli.ClientVersion(), "1.39")
}
