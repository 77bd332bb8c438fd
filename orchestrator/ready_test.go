package orchestrator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/readiness"
	"github.com/agent-on-demand/aod/runtime"
)

func TestAnEngineThatHangsIsToldAsOneThatIsSilent(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	hung := make(chan struct{})
	w.hang("Probe", hung)
	ctx, cancel := context.WithTimeoutCause(trusted.Context(t), time.Millisecond, runtime.Silent(readiness.ProbeTime))
	defer cancel()
	err := w.service.askKinds(ctx) // the probe's time is over
	close(hung)
	if said := fault.Public(err); said.Kind != fault.Unavailable || !strings.Contains(said.Msg, "has not answered") || !strings.Contains(said.Hint, "restart") {
		t.Errorf("%+v", said)
	}
}
