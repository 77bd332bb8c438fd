package enginetest

import (
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

func TestFakeConforms(t *testing.T) {
	Run(t, func(t *testing.T) Harness {
		fake := NewFake(shell)
		fake.RunStep = shellStep
		fake.AddImage(runtime.Image{Tags: []string{"sh:latest"}, OS: "linux"})
		return Harness{Engine: fake, Image: "sh"}
	})
}
