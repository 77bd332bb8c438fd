package container

import (
	"context"
	"testing"

	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

func TestAUnitThatIsAskedForItsCardIsNotSweptAway(t *testing.T) {
	engine := enginetest.NewFake(nil)
	c := New(engine, Options{})
	if err := c.Open(run.Home{Dir: t.TempDir(), Owner: "me"}); err != nil {
		t.Fatal(err)
	}
	if err := c.describing.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.SweepStrays(ctx, func(string) bool { return false }); err == nil {
		t.Error("strays are swept while a unit is asked for its card")
	}
	c.describing.give()
	if err := c.SweepStrays(t.Context(), func(string) bool { return false }); err != nil {
		t.Error(err)
	}
}
