package handoff

import (
	"context"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestAWaiterOfAKeyGivesUpWithItsRequest(t *testing.T) {
	t.Parallel()
	k := keys{known: map[string]*key{}}
	e, err := k.enter(t.Context(), "k")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.enter(ctx, "k"); !fault.Is(err, fault.Cancelled) {
		t.Errorf("%v", err)
	}
	k.leave("k", e)
	if len(k.known) != 0 {
		t.Errorf("keys %v", k.known)
	}
}
