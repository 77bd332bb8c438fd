package doctor

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// shelf is an engine that has some images, and whose builds end with an error.
type shelf struct {
	runtime.Images
	has     string
	err     error
	removed []string
}

func (s *shelf) Image(_ context.Context, ref string) (runtime.Image, error) {
	if s.has == "" || !strings.Contains(ref, s.has) {
		return runtime.Image{}, fault.New(fault.NotFound, "there is no %s", ref)
	}
	return runtime.Image{}, nil
}

func (s *shelf) RemoveImage(_ context.Context, ref string) error {
	s.removed = append(s.removed, ref)
	return nil
}

func (s *shelf) Build(context.Context, runtime.BuildSpec, func(runtime.BuildEvent)) (string, error) {
	return "", s.err
}

func TestTheDoctorTriesABuild(t *testing.T) {
	t.Run("on the engine, and leaves nothing", func(t *testing.T) {
		engine := dockertest.Require(t)
		if c := examineBuilds(t.Context(), engine); c.Health != fine || !strings.HasPrefix(c.Found, "work: two lines upon ") {
			t.Errorf("%+v", c)
		}
		testkit.Eventually(t, "no image is left, also of another doctor", func() bool {
			left, err := exec.CommandContext(t.Context(), "docker", "images", "--quiet", trialRepository).Output()
			if err != nil {
				t.Fatal(err)
			}
			return len(left) == 0
		})
	})
	t.Run("and tells an engine's own words", func(t *testing.T) {
		const words = "the build failed in step [2/2] RUN true: network bridge not found"
		engine := &shelf{has: "debian", err: fault.New(fault.Build, words)}
		if c := examineBuilds(t.Context(), engine); c.Health != broken || c.Found != words || c.Fix == "" {
			t.Errorf("%+v", c)
		}
		if len(engine.removed) != 1 || !strings.HasPrefix(engine.removed[0], trialRepository+":") {
			t.Errorf("removed %q", engine.removed)
		}
	})
	t.Run("but not without an image to build upon", func(t *testing.T) {
		if c := examineBuilds(t.Context(), &shelf{err: fault.New(fault.Build, "no")}); c.Health != fine || !strings.Contains(c.Found, "not tried") {
			t.Errorf("%+v", c)
		}
	})
}
