package orchestrator

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

// TestAProgramThatFloodsItsLogIsHeldBack needs an engine: the program waits in the pipes between it
// and whoever reads them.
func TestAProgramThatFloodsItsLogIsHeldBack(t *testing.T) {
	t.Parallel()
	p := newAgentProbe(t)
	record, err := p.ask("agent: {command: "+shell("head -c 12M /dev/zero >&2; echo done")+"}\nlimits: {log: 1KiB, timeout: 2m}\n", message("x"))
	if err != nil {
		t.Fatal(err)
	}
	warned := strings.Join(record.Warnings, "\n")
	if record.Outcome != api.Success || !record.Log.Truncated || !strings.Contains(warned, "the agent wrote more than its limit (limits.log); it waited ") {
		t.Errorf("%s\n%s", warned, show(record))
	}
	for _, timeout := range []string{"5s", "30s"} { // a busy machine may take longer to start it
		record, err = p.ask("agent: {command: "+shell("cat /dev/zero >&2")+"}\nlimits: {log: 1KiB, timeout: "+timeout+"}\n", message("x"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(show(record), "for its log") {
			break
		}
	}
	if record.Outcome != api.TimedOut || record.Error == nil || !strings.Contains(record.Error.Hint, "for its log: it writes more than limits.log keeps") {
		t.Errorf("%s", show(record))
	}
}
