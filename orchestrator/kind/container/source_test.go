package container

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

func TestHowManySandboxesAUnitWants(t *testing.T) {
	t.Parallel()
	three := 3
	for _, c := range []struct {
		name, agent string
		own         *int
		want        int
	}{
		{"it says nothing", "", nil, 0},
		{"it says so", "warm: 2\n", nil, 2},
		{"the operator says otherwise", "warm: 2\n", &three, 3},
		{"under an isolation runtime none can wait", "warm: 2\nruntime: runsc\n", &three, 0},
	} {
		u := load(t, map[string]string{
			"Dockerfile": worker["Dockerfile"], "tools.yaml": worker["tools.yaml"], "schema.json": worker["schema.json"],
			"agent.yaml": worker["agent.yaml"] + c.agent,
		})
		u.Govern(unit.Given{Warm: c.own}, unit.Bounds{})
		kind := New(enginetest.NewFake(nil), Options{})
		if got := sourceOf(kind).Wants(u); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A turn has its session's home, which no sandbox has that waits for any run.
func TestNoSandboxOfAnAgentWithSessionsWaits(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]int{
		"agent: {command: [cat]}": 2, "agent: {command: [cat], mode: interactive}": 0,
		"agent: {command: [cat], mode: interactive, protocol: acp}\nsession: {keep_alive: true}": 0,
		"agent: {command: [cat], input: json-rpc, output: json-rpc, protocol: acp}":              0,
	} {
		u := load(t, map[string]string{"agent.yaml": "name: agent\nkind: agent\nimage: debian\nwarm: 2\n" + yaml + "\n"})
		u.Govern(unit.Given{}, unit.Bounds{})
		if got := sourceOf(New(enginetest.NewFake(nil), Options{})).Wants(u); got != want {
			t.Errorf("%s: %d, want %d", yaml, got, want)
		}
	}
}

func TestHowManyRunsASandboxMayServe(t *testing.T) {
	t.Parallel()
	u := newBench(t, map[string]string{"agent.yaml": worker["agent.yaml"] + "reuse: 5\n"}).unit
	for _, c := range []struct {
		name   string
		image  runtime.Image
		loaded bool
		want   int
	}{
		{"as many as it says", runtime.Image{}, true, 5},
		{"one, if its program isn't loaded", runtime.Image{}, false, 1},
		{"one, if something of it isn't emptied", runtime.Image{Volumes: []string{"/var/spool"}}, true, 1},
	} {
		if got := runsOf(u, c.image, c.loaded); got != c.want {
			t.Errorf("%s: %d", c.name, got)
		}
	}
	if got := runsOf(newBench(t).unit, runtime.Image{}, true); got != 1 {
		t.Errorf("a unit that says nothing: %d", got)
	}
}

func TestASandboxThatComesToNothingLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*harness){
		"its image can't be built": func(b *harness) { b.breaks("Build", fault.New(fault.Build, "no")) },
		"it can't be created":      func(b *harness) { b.breaks("Create", errAway) },
		"it can't be started":      func(b *harness) { b.breaks("Start", errAway) },
		"it ends before it waits": func(b *harness) {
			b.engine.Program = func(context.Context, runtime.ContainerSpec, io.Writer, io.Writer) int { return 1 }
		},
		"its init can't be had": func(b *harness) { must(os.RemoveAll(b.home.Bin)); must(os.WriteFile(b.home.Bin, nil, 0o600)) },
		"its directory can't be": func(b *harness) {
			must(os.RemoveAll(b.kind.machine.poolDir()))
			must(os.WriteFile(b.kind.machine.poolDir(), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			spoil(b)
			if s, err := sourceOf(b.kind).Start(t.Context(), b.unit, "s1", false); err == nil {
				t.Errorf("it waits: %v", s)
			}
			b.nothingLeft()
			if entries, _ := os.ReadDir(b.kind.machine.poolDir()); len(entries) > 0 {
				t.Errorf("left are %v", entries)
			}
		})
	}
}

// sourceOf starts the waiting sandboxes of a kind.
func sourceOf(c *Containers) source {
	return source{machine: c.machine, starter: c.starter, images: c.images}
}
