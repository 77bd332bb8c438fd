package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// errNoBuildKit says that another try with the classic builder makes sense.
var errNoBuildKit = errors.New("the engine builds without BuildKit")

// refusesBuildKit recognises the answers of engines that have no BuildKit, have it
// switched off, or want a session for it, which this package doesn't hold.
func refusesBuildKit(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "buildkit not enabled") || strings.Contains(text, "buildkit is not") ||
		strings.Contains(text, "buildkit is only") || strings.Contains(text, "no active session") ||
		(strings.Contains(text, "version") && strings.Contains(text, "build") && strings.Contains(text, "support"))
}

// building is the build of one image.
type building struct {
	engine   *Engine
	spec     runtime.BuildSpec
	progress func(runtime.BuildEvent)
}

// classic builds once more where that happened, whoever removed the image. Without the
// cache it can't happen.
func (b building) classic(ctx context.Context) (string, error) {
	for range cachedTries {
		id, err := b.with(ctx, build.BuilderV1)
		if !errors.Is(err, errLostImage) {
			return id, err
		}
	}
	b.spec.NoCache = true
	return b.with(ctx, build.BuilderV1)
}

func (b building) with(ctx context.Context, version build.BuilderVersion) (string, error) {
	tar := sendContext(b.spec.WriteContext)
	id, err := b.from(ctx, tar.reader, version)
	if writeErr := tar.close(); writeErr != nil && err != nil && ctx.Err() == nil {
		// The engine complains about half a tar. What matters is why it was half.
		return "", fmt.Errorf("build context: %w", writeErr)
	}
	return id, err
}

func (b building) from(ctx context.Context, tar io.Reader, version build.BuilderVersion) (string, error) {
	spec := b.spec
	resp, err := b.engine.cli.ImageBuild(ctx, tar, build.ImageBuildOptions{
		Version:     version,
		Tags:        spec.Tags,
		Labels:      spec.Labels,
		Dockerfile:  spec.Dockerfile,
		NoCache:     spec.NoCache,
		Remove:      true,
		ForceRemove: true,
		NetworkMode: spec.Limits.Network,
		Memory:      spec.Limits.MemoryBytes,
		MemorySwap:  spec.Limits.MemoryBytes, // no swap beside it
		CPUPeriod:   cpuPeriod(spec.Limits.CPUs),
		CPUQuota:    int64(spec.Limits.CPUs * buildPeriod),
	})
	if err != nil {
		return "", b.refused(ctx, version, err)
	}
	defer resp.Body.Close()
	log := newBuildLog(b.progress)
	err = log.read(resp.Body)
	var failed *stepError
	switch {
	case err == nil:
		return log.imageID, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("build: %w", ctx.Err())
	case errors.As(err, &failed):
		if version == build.BuilderV1 && !spec.NoCache && failed.lostImage() {
			return "", errLostImage
		}
		if version == build.BuilderBuildKit && refusesBuildKit(err.Error()) {
			return "", errNoBuildKit
		}
		return "", log.failureWithin(spec.Limits, err)
	}
	return "", b.engine.faultOf(ctx, call{"build", "an image", ""}, connectionLost{err})
}

// buildPeriod is the period in microseconds by which a build's share of the processors is
// measured.
const buildPeriod = 100_000

func cpuPeriod(cpus float64) int64 {
	if cpus == 0 {
		return 0
	}
	return buildPeriod
}

// refused is for the answer to a build that never began: a Dockerfile that the
// classic builder can't parse, or an engine without BuildKit.
func (b building) refused(ctx context.Context, version build.BuilderVersion, err error) error {
	if ctx.Err() == nil && !isConnection(err) {
		text := err.Error()
		switch {
		case version == build.BuilderBuildKit && (refusesBuildKit(text) || cerrdefs.IsNotImplemented(err)):
			return errNoBuildKit
		case cerrdefs.IsInvalidArgument(err) || strings.Contains(text, "ockerfile"):
			return newBuildLog(nil).
				failureWithin(b.spec.Limits, &stepError{text: strings.TrimPrefix(text, "Error response from daemon: ")})
		}
	}
	return b.engine.faultOf(ctx, call{"build", "an image", ""}, err)
}

// contextPipe is a build context on its way.
type contextPipe struct {
	reader *io.PipeReader
	result chan error
}

func sendContext(write func(io.Writer) error) contextPipe {
	reader, writer := io.Pipe()
	result := make(chan error, 1)
	go func() {
		err := write(writer)
		writer.CloseWithError(err)
		result <- err
	}()
	return contextPipe{reader, result}
}

// close ends the writer, waits for it and returns its error, unless that is only
// that nobody wanted to read on.
func (p contextPipe) close() error {
	p.reader.Close()
	err := <-p.result
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// failureWithin makes the Build fault of a failed build. It is a runtime.ErrBuildNetwork if the
// failed step wanted a network that its build didn't have.
func (l *buildLog) failureWithin(limits runtime.BuildLimits, err error) error {
	if limits.Network == "none" && l.failed.wantedNetwork() {
		err = fmt.Errorf("%w: %w", runtime.ErrBuildNetwork, err)
	}
	if limits.Classic && l.failed.wantedBuildKit(err) {
		return fault.Wrap(fault.Build, err, "%s", fault.Public(l.failure(err)).Msg).WithHint(hintClassic)
	}
	return l.failure(err)
}

// failure makes the Build fault of a failed build.
func (l *buildLog) failure(err error) error {
	step := l.failed
	reason := buildReason(err.Error())
	if image := step.baseImage(); image != "" {
		return baseImageFault(image, err)
	}
	if step == nil {
		return fault.Wrap(fault.Build, err, "the build failed: %s", reason)
	}
	msg := fmt.Sprintf("the build failed in step %s: %s", step.name, reason)
	if len(step.tail) > 0 {
		msg += "\n" + strings.Join(step.tail, "\n")
	}
	return fault.Wrap(fault.Build, err, "%s", msg).WithHint("%s", step.hint())
}

func baseImageFault(image string, err error) error {
	err = fmt.Errorf("%w: %w", runtime.ErrNoBase, err)
	f := fault.Wrap(fault.Build, err, "the base image %s is not on the engine and its registry doesn't give it", image)
	if registryUnreachable(err.Error()) {
		f.Msg = fmt.Sprintf("the base image %s is not on the engine and no registry could be reached for it", image)
	}
	return f.WithHint("check the name after FROM; build or load %s on this engine first (`docker load`), or give the "+
		"engine a way to its registry", image)
}
