package docker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// builtWith builds an image with one step, and returns what the step wrote.
func builtWith(t *testing.T, engine *docker.Engine, limits runtime.BuildLimits, step string) (wrote string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	_, err = engine.Build(ctx, runtime.BuildSpec{
		Limits: limits, NoCache: true, Labels: testLabels, Tags: []string{"aod.test/limits:1"},
		WriteContext: tarOf("Dockerfile", "FROM "+dockertest.Image+"\n"+labelLine+"\nRUN "+step+"\n"),
	}, func(event runtime.BuildEvent) {
		if event.State == runtime.StepLog {
			wrote += event.Log + "\n"
		}
	})
	return wrote, err
}

func TestABuildWithoutTheNetwork(t *testing.T) {
	engine := dockertest.Require(t)
	t.Cleanup(func() { removeImages(t, engine) })
	for name, classic := range map[string]bool{"BuildKit": false, "classic": true} {
		t.Run(name, func(t *testing.T) {
			const devices = "tail -n +3 /proc/net/dev | cut -d: -f1 | grep -vw lo || echo none"
			none := runtime.BuildLimits{Network: "none", Classic: classic}
			if got, err := builtWith(t, engine, none, devices); err != nil || strings.Contains(got, "eth") {
				t.Errorf("with none it has %q, %v", got, err)
			}
			if got, err := builtWith(t, engine, runtime.BuildLimits{Classic: classic}, devices); err != nil || !strings.Contains(got, "eth") {
				t.Errorf("by default it has %q, %v", got, err)
			}
			_, err := builtWith(t, engine, none, "echo \"Temporary failure resolving 'packages.invalid'\" >&2; exit 100")
			if !errors.Is(err, runtime.ErrBuildNetwork) || !fault.Is(err, fault.Build) {
				t.Errorf("a step that wants the network: %v", err)
			}
			if _, err = builtWith(t, engine, none, "exit 100"); errors.Is(err, runtime.ErrBuildNetwork) {
				t.Errorf("a step that doesn't: %v", err)
			}
		})
	}
}

func TestTheClassicBuilderKeepsMemoryAndProcessors(t *testing.T) {
	engine := dockertest.Require(t)
	t.Cleanup(func() { removeImages(t, engine) })
	limits := runtime.BuildLimits{Classic: true, MemoryBytes: 256 << 20, CPUs: 0.5}
	got, err := builtWith(t, engine, limits, "cd /sys/fs/cgroup; cat memory/memory.limit_in_bytes cpu/cpu.cfs_quota_us 2>/dev/null || cat memory.max cpu.max")
	for _, want := range []string{fmt.Sprint(256 << 20), "50000"} {
		if !strings.Contains(got, want) || err != nil {
			t.Errorf("it has %q, not %s: %v", got, want, err)
		}
	}
}

func TestWhatOnlyBuildKitKnowsIsExplained(t *testing.T) {
	engine := dockertest.Require(t)
	t.Cleanup(func() { removeImages(t, engine) })
	_, err := builtWith(t, engine, runtime.BuildLimits{Classic: true}, "--mount=type=cache,target=/x true")
	if !fault.Is(err, fault.Build) || !strings.Contains(fault.Public(err).Hint, "build_memory") {
		t.Errorf("%v, %q", err, fault.Public(err).Hint)
	}
}
