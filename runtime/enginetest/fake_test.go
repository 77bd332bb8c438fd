package enginetest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/agent-on-demand/aod/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFakeConforms(t *testing.T) {
	Run(t, func(t *testing.T) Harness {
		fake := NewFake(shell)
		fake.RunStep = shellStep
		fake.AddImage(runtime.Image{Tags: []string{"sh:latest"}, OS: "linux"})
		return Harness{Engine: fake, Image: "sh"}
	})
}
