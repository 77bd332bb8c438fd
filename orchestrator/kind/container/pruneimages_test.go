package container

import (
	"errors"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/runtime"
)

func TestOnlyOurImagesThatNoUnitNeedsArePruned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.opts.Builds.Settle = time.Nanosecond
	b.restart()
	b.carriesOut(b.execution())
	needed := b.kind.Image(b.unit)
	for ref, owner := range map[string]string{"aod-capsule/old:1": "me", "aod-capsule/theirs:1": "you", "aod-capsule/nobodys:1": "", "mine:latest": "me"} {
		labels := map[string]string{}
		if owner != "" {
			labels[labelBuiltFor] = owner
		}
		b.engine.AddImage(runtime.Image{Tags: []string{ref}, Labels: labels})
	}
	units := func() ([]*unit.Unit, error) { return []*unit.Unit{b.unit}, nil }
	prune := func(units func() ([]*unit.Unit, error), dryRun bool, want int) {
		t.Helper()
		if n, err := b.kind.pruner.prune(t.Context(), units, dryRun); err != nil || n != want {
			t.Errorf("%d images, want %d: %v", n, want, err)
		}
	}
	there := func(want bool, refs ...string) {
		t.Helper()
		for _, ref := range refs {
			if _, err := b.engine.Image(t.Context(), ref); fault.Is(err, fault.NotFound) == want {
				t.Errorf("%s: %v", ref, err)
			}
		}
	}
	if _, err := b.kind.pruner.prune(t.Context(), func() ([]*unit.Unit, error) { return nil, errAway }, false); !errors.Is(err, errAway) {
		t.Errorf("units that can't be listed: %v", err)
	}
	prune(units, true, 1)
	there(true, "aod-capsule/old:1")
	b.breaks("RemoveImage", fault.New(fault.Conflict, "a container has it"))
	prune(units, false, 0)
	b.breaks("RemoveImage", nil)
	prune(units, false, 1)
	there(false, "aod-capsule/old:1")
	there(true, needed, "aod-capsule/theirs:1", "aod-capsule/nobodys:1", "mine:latest", "debian")
	prune(func() ([]*unit.Unit, error) { return nil, nil }, false, 1)
	there(false, needed)
	b.carriesOut(b.execution())
}

func TestAnImageThatWasJustAskedForIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.carriesOut(b.execution())
	n, err := b.kind.pruner.prune(t.Context(), func() ([]*unit.Unit, error) { return nil, nil }, false)
	if err != nil || n != 0 {
		t.Errorf("%d images, %v", n, err)
	}
}

func TestTheBoundsOfABuild(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.opts.Builds.MemoryBytes, b.opts.Builds.CPUs = 1<<30, 2
	b.restart()
	for name, c := range map[string]struct {
		bounds unit.Bounds
		source string
		want   runtime.BuildLimits
	}{
		"of a command":         {unit.Bounds{}, "", runtime.BuildLimits{}},
		"of a server":          {unit.Bounds{BuildNetwork: "none"}, unit.FromDirectory, runtime.BuildLimits{Network: "none"}},
		"with the network":     {unit.Bounds{BuildNetwork: "default", BuildNetworks: []string{"none", "default"}}, unit.FromDirectory, runtime.BuildLimits{}},
		"beyond the policy":    {unit.Bounds{BuildNetwork: "default", BuildNetworks: []string{"none"}}, unit.FromDirectory, runtime.BuildLimits{Network: "none"}},
		"of an upload":         {unit.Bounds{BuildNetwork: "none"}, unit.FromUpload, runtime.BuildLimits{Network: "none", Classic: true}},
		"which no policy lets": {unit.Bounds{BuildNetworks: []string{}}, unit.FromDirectory, runtime.BuildLimits{Network: "none"}},
	} {
		u := *b.unit
		u.Policy.Bounds, u.Source = c.bounds, c.source
		c.want.MemoryBytes, c.want.CPUs = 1<<30, 2
		if got := b.kind.images.limits(&u); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
