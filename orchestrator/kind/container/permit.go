package container

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// permit decides what the program asks to be let do.
func (t *turn) permit(p agent.Permission) (option string, err error) {
	switch t.config.Approval {
	case agent.Allow:
		if i := slices.IndexFunc(p.Options, func(o agent.Option) bool { return o.Allows }); i >= 0 {
			return p.Options[i].ID, nil
		}
	case agent.Ask:
		return t.askPerson(p)
	}
	return "", nil
}

// isStopped reports whether the turn is to end, and not only this process.
func (t *turn) isStopped() bool {
	return t.ctx.Err() != nil && !errors.Is(context.Cause(t.ctx), runtime.ErrDetach)
}

// permitTime is how long a person has to answer a permission request where agent.yaml doesn't say.
const permitTime = 10 * time.Minute

// askPerson asks people. What nobody answers is refused.
func (t *turn) askPerson(p agent.Permission) (option string, err error) {
	var ids []string
	shown := map[string]string{}
	for _, o := range p.Options {
		ids, shown[o.ID] = append(ids, o.ID), o.Name
	}
	if len(ids) == 0 {
		return "", nil
	}
	show, err := json.Marshal(shown)
	if err != nil {
		return "", err
	}
	answer, err := t.Ask(t.ctx, run.Question{
		Address: "permission/" + p.ID, Kind: api.QuestionApproval, Text: p.Text, Show: show, Answers: ids,
		Until: time.Now().Add(cmp.Or(t.config.AskTime, permitTime)),
	})
	var denied *run.Denied
	if errors.As(err, &denied) {
		t.Warn("a permission was refused: %s", denied.Reason)
		return "", nil
	}
	return answer.Action, err
}
