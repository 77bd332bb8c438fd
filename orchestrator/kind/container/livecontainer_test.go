package container

import (
	"testing"

	"github.com/agent-on-demand/aod/capsule/agent"
)

// over is a dialog that can only be closed.
type over struct{ agent.Dialog }

func (over) Close() {}

// An engine that fails to remove the container is asked for everything with the session's label, and the failure told.
func TestNothingOfASessionIsLeftByAnEngineThatFailsOnce(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string][]failure{
		"an engine that is well":        nil,
		"a removal that fails":          {{"Remove", 1, false}},
		"a removal that isn't answered": {{"Remove", 1, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			engine := &lossy{Fake: b.engine}
			b.over = engine
			b.restart()
			x := b.execution()
			x.run.Durable = true // its container stays
			if _, err := x.Attempt(t.Context()); err != nil || b.states() == "" {
				t.Fatal(err, b.states())
			}
			v := &liveContainer{journal: &turnJournal{}, dialog: over{}, sandbox: x.attempt.sandbox, stop: func(error) {}, ended: make(chan struct{})}
			close(v.ended)
			b.kind.livings.add("r1", v)
			engine.failsAt(fails...)
			err := b.kind.livings.end(t.Context(), "r1")
			if (err != nil) != (fails != nil) || b.states() != "" {
				t.Errorf("%v; left: %q", err, b.states())
			}
		})
	}
}
