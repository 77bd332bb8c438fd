package docker_test

import (
	"testing"

	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

func TestDockerConforms(t *testing.T) {
	dockertest.Require(t) // once, so that a skip is one line
	enginetest.Run(t, func(t *testing.T) enginetest.Harness {
		return enginetest.Harness{Engine: dockertest.Require(t), Image: dockertest.Image}
	})
}
