package agents

import (
	"testing"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func TestARequestWithoutAModeIsOfTheDefaultOne(t *testing.T) {
	p := Policy{Rules: Rules{Modes: []string{"LIVE"}}}
	if err := p.permit("x", map[string]string{}); httpwire.ProblemOf(err).Status != 403 {
		t.Errorf("a mode that is left out: %v", err)
	}
	demo := Policy{Rules: Rules{Modes: []string{"DEMO"}}}
	if err := demo.permit("x", map[string]string{}); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	p.Require = []string{"mode"}
	if err := p.permit("x", map[string]string{}); httpwire.ProblemOf(err).Status != 422 {
		t.Errorf("a mode that is required: %v", err)
	}
}
