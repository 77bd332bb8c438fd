package container

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/runtime"
)

func TestWhoWroteTooMuchIsNamed(t *testing.T) {
	t.Parallel()
	for _, p := range []program{capsuleProgram{}, mcpServer{}, wrappedAgent{}, agenticUnit{}} {
		if got := p.wroteTooMuch(runtime.Limits{}).Message; !strings.HasPrefix(got, "the "+p.noun()+" was stopped") {
			t.Errorf("of a %s: %s", p.noun(), got)
		}
	}
}
