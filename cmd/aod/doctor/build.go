package doctor

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/images"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	// trialTime bounds a build of which nothing takes long.
	trialTime = time.Minute
	// trialRepository is what the image of the doctor's build is called, while there is one.
	trialRepository = "aod-doctor/trial"
)

// examineBuilds has the engine build two lines, upon an image that it has: what builds need beside
// the API, such as a bridge, an engine can lack for long before somebody notices. Nothing is
// fetched, and nothing is left.
func examineBuilds(ctx context.Context, engine runtime.ImageBuilder) checkup {
	from, err := trialImage(ctx, engine)
	switch {
	case err != nil:
		return sick("builds", err)
	case from == "":
		return checkup{Name: "builds", Health: fine, Found: "not tried: the engine has no image to build upon yet"}
	}
	begun := time.Now()
	if err := tryBuild(ctx, engine, from); err != nil {
		c := sick("builds", err)
		if c.Fix == "" {
			c.Fix = "each build would fail like this; look at the engine's log, and restart it when its " +
				"network is gone"
		}
		return c
	}
	return checkup{
		Name: "builds", Health: fine,
		Found: fmt.Sprintf("work: two lines upon %s in %s", from, time.Since(begun).Round(time.Millisecond)),
	}
}

// trialImage returns the first image that the engine has of those that have a shell; "" if none.
func trialImage(ctx context.Context, engine runtime.Images) (string, error) {
	for _, ref := range []string{images.BaseTag(), images.BaseFrom} {
		_, err := engine.Image(ctx, ref)
		if err == nil {
			return ref, nil
		}
		if !fault.Is(err, fault.NotFound) {
			return "", err
		}
	}
	return "", nil
}

func tryBuild(ctx context.Context, engine runtime.ImageBuilder, from string) (err error) {
	tag := trialRepository + ":" + strings.ToLower(rand.Text())
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), trialTime)
		defer cancel()
		err = errors.Join(err, engine.RemoveImage(cleanup, tag))
	}()
	brief, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	_, err = engine.Build(brief, runtime.BuildSpec{
		Tags: []string{tag}, NoCache: true,
		WriteContext: func(w io.Writer) error { return writeDockerfile(w, "FROM "+from+"\nRUN true\n") },
	}, nil)
	if err != nil && brief.Err() != nil && ctx.Err() == nil {
		return fault.Wrap(fault.Unavailable, err, "a build of two lines took longer than %s", trialTime).
			WithHint("see what the engine is busy with")
	}
	return err
}

// writeDockerfile writes a build context that has no other file.
func writeDockerfile(w io.Writer, text string) error {
	archive := tar.NewWriter(w)
	if err := archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: "Dockerfile", Mode: 0o644,
		Size: int64(len(text)),
	}); err != nil {
		return err
	}
	if _, err := io.WriteString(archive, text); err != nil {
		return err
	}
	return archive.Close()
}
