package container

import (
	"context"
	"slices"
	"testing"

	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// permitting answers what a run asks, and keeps the question.
type permitting struct {
	run.Host
	asked run.Question
}

func (p *permitting) Ask(_ context.Context, q run.Question) (run.Answer, error) {
	p.asked = q
	return run.Answer{Action: q.Answers[0]}, nil
}

func TestAPermissionIsForItsApprovers(t *testing.T) {
	t.Parallel()
	host := &permitting{}
	named := []string{"team:legal"}
	r := &run.Run{}
	r.LedBy(host, nil)
	a := approver{run: r, config: &agent.Config{Approval: agent.Ask, Approvers: named}}
	option, err := a.permit(t.Context(), agent.Permission{ID: "7", Text: "Write", Options: []agent.Option{{ID: "yes", Name: "Yes"}}})
	if err != nil || option != "yes" || !slices.Equal(host.asked.Approvers, named) {
		t.Errorf("%q, %v: asked %+v", option, err, host.asked)
	}
}
