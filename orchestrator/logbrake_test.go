package orchestrator

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

// TestAProgramThatFloodsItsLogIsHeldBack needs an engine: the program waits in the pipes between it
// and whoever reads them. How long it waits for us, and not for a busy machine, package runtime knows.
func TestAProgramThatFloodsItsLogIsHeldBack(t *testing.T) {
	t.Parallel()
	p := newAgentProbe(t)
	record, err := p.ask("agent: {command: "+shell("head -c 12M /dev/zero >&2; echo done")+"}\nlimits: {log: 1KiB, timeout: 2m}\n", message("x"))
	if err != nil {
		t.Fatal(err)
	}
	warned := strings.Join(record.Warnings, "\n")
	if record.Outcome != api.Success || !record.Log.Truncated || !strings.Contains(warned, "the agent wrote more than its limit (limits.log)") {
		t.Errorf("%s\n%s", warned, show(record))
	}
}
