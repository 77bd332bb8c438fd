package container

import (
	"context"
	"errors"
	"testing"

	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

func TestAUnitThatIsAskedForItsCardIsNotSweptAway(t *testing.T) {
	t.Parallel()
	engine := enginetest.NewFake(nil)
	c := New(engine, Options{})
	if err := c.Open(run.Home{Dir: t.TempDir(), Owner: "me"}); err != nil {
		t.Fatal(err)
	}
	if err := acquire(t.Context(), c.cards.describing); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.SweepStrays(ctx, func(string) bool { return false }); err == nil {
		t.Error("strays are swept while a unit is asked for its card")
	}
	c.cards.describing.Release(1)
	if err := c.SweepStrays(t.Context(), func(string) bool { return false }); err != nil {
		t.Error(err)
	}
}

func TestWhatBelongsToNoRunIsSweptAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := map[string]string{}
	for name, labels := range map[string]map[string]string{
		"stray":    {runtime.LabelRun: "r1", runtime.LabelOwner: "me"},
		"live":     {runtime.LabelRun: "r2", runtime.LabelOwner: "me"},
		"acquired": {runtime.LabelRun: "s1", runtime.LabelOwner: "me"},
		"foreign":  {runtime.LabelRun: "r1", runtime.LabelOwner: "you"},
		"unowned":  {runtime.LabelRun: "r1"},
	} {
		id, err := b.engine.Create(t.Context(), runtime.ContainerSpec{Name: name, Image: "debian", Labels: labels})
		if err != nil {
			t.Fatal(err)
		}
		made[name] = id
	}
	b.kind.pool.Claimed("s1")
	live := func(id string) bool { return id == "r2" }
	b.breaks("ContainersByLabel", errAway)
	if err := b.kind.SweepStrays(t.Context(), live); !errors.Is(err, runtime.ErrLeftBehind) {
		t.Errorf("with an engine that doesn't list them: %v", err)
	}
	b.breaks("ContainersByLabel", nil)
	if err := b.kind.SweepStrays(t.Context(), live); err != nil {
		t.Error(err)
	}
	for name, id := range made {
		if _, there := b.engine.Spec(id); there == (name == "stray") {
			t.Errorf("%s: it is there: %v", name, there)
		}
	}
	b.breaks("Probe", errAway)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("because"))
	if err := b.kind.SweepStrays(ctx, live); err == nil || err.Error() != "because" {
		t.Errorf("an engine that is away is waited for: %v", err)
	}
}
