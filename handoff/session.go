package handoff

import (
	"context"
	"encoding/json"

	"github.com/agent-on-demand/aod/capsule/contract"
)

// StartSession has a call made of a unit that talks with its caller: extra is the caller's
// end, which the unit's kind understands. It returns the id of the run. The call itself
// spends nothing; see Spend. The errors are those of Start.
func (b *Broker) StartSession(ctx context.Context, target string, extra any) (id string, err error) {
	defer func() { b.tally.count(err) }()
	unit, err := b.permit(ctx, target)
	if err != nil {
		return "", err
	}
	args, err := contract.Decode(json.RawMessage("{}"), b.limits.ArgsBytes)
	if err != nil {
		return "", err
	}
	return b.runs.Start(ctx, Call{Target: unit, Args: args, Deadline: b.caller.Deadline, Extra: extra})
}

// Spend counts one call of a session, or refuses it as Start does.
func (b *Broker) Spend() error { return b.caller.Tree.Spend(b.caller.Path, b.limits) }
