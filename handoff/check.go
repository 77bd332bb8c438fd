package handoff

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// permit returns the unit, if the caller may call it now.
func (b *Broker) permit(ctx context.Context, target string) (*Unit, error) {
	unit, err := b.Unit(ctx, target)
	if err != nil {
		return nil, err
	}
	for _, check := range []func(*Unit) error{b.checkCycle, b.checkDepth, b.checkDeadline} {
		if err := check(unit); err != nil {
			return nil, err
		}
	}
	return unit, nil
}

// checkGrant refuses a unit that the caller's tools.yaml doesn't name.
func (b *Broker) checkGrant(target string) error {
	if slices.Contains(b.caller.Grants, target) {
		return nil
	}
	if path := b.caller.Path; path[len(path)-1].Flow {
		return refuse(RuleGrant, fault.New(fault.Forbidden, "the flow %s may not call %s", quote(b.caller.Unit),
			quote(target)).
			WithHint("name the unit in its flow.yaml; the operator can forbid it all the same (unit.%s.may_not_call)",
				b.caller.Unit))
	}
	name := "NAME"
	if api.CheckUnitName(target) == nil {
		name = target
	}
	return refuse(RuleGrant, fault.New(fault.Forbidden, "%s may not call %s: its tools.yaml grants no such handoff",
		quote(b.caller.Unit), quote(target)).
		WithHint("add {name: …, capsule: %s} to tools.yaml, or let the operator allow it (--may-call %s, or "+
			"unit.%s.may_call of a server); GET /capsules lists what may be called",
			name, name, b.caller.Unit))
}

// checkCycle refuses a unit that is on the path more often than its recursion allows. If
// versions of the unit differ in that, the strictest decides.
func (b *Broker) checkCycle(unit *Unit) error {
	stands, allowed := 0, unit.Recursion
	for _, step := range b.caller.Path {
		if step.Unit == unit.Name {
			stands++
			allowed = min(allowed, step.Recursion)
		}
	}
	if stands <= allowed {
		return nil
	}
	return refuse(RuleCycle,
		fault.New(fault.Conflict, "%s stands on the path of calls that leads here already, and its recursion is %d",
			quote(unit.Name), allowed).
			WithHint("break the circle, or write recursion: %d into its agent.yaml", stands))
}

// checkDepth refuses a call that lies deeper than the operator or a run on the path allows.
func (b *Broker) checkDepth(*Unit) error {
	depth := b.caller.depth() + 1
	if depth > b.limits.Depth {
		return refuse(RuleDepth, fault.New(fault.Conflict, "calls may nest %d deep, and this would be one more",
			b.limits.Depth).
			WithHint("call from further up; whoever runs this server can raise its limit of depth"))
	}
	for i, step := range b.caller.Path {
		if budget := step.Budgets.Depth; budget > 0 && depth-i > budget {
			return refuse(RuleDepth,
				fault.New(fault.Conflict, "calls below %s may nest %d deep, and this would be one more",
					quote(step.Unit), budget).
					WithHint("raise budgets.depth in the agent.yaml of %s, or call from further up", quote(step.Unit)))
		}
	}
	return nil
}

// checkDeadline refuses every call after the caller's own deadline.
func (b *Broker) checkDeadline(*Unit) error {
	if b.caller.Deadline.IsZero() || time.Now().Before(b.caller.Deadline) {
		return nil
	}
	return refuse(RuleDeadline,
		fault.New(fault.Deadline, "the time of %s is up, so that nothing can be called any more", quote(b.caller.Unit)).
			WithHint("call earlier, or raise limits.timeout in its agent.yaml"))
}

// arguments decodes the arguments and checks them against the callee's contract.
func (b *Broker) arguments(ctx context.Context, unit *Unit, asked Request) (contract.Payload, error) {
	raw := asked.Args
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	args, err := contract.Decode(raw, b.limits.ArgsBytes)
	if fault.Is(err, fault.TooLarge) {
		return args, refuse(RuleSize, fault.Public(err))
	}
	if err != nil {
		return args, err
	}
	if args, err = asked.nameFiles(unit.Contract.Input, args); err != nil {
		return args, err
	}
	named, err := withCustomaryNames(args)
	if err != nil {
		return args, err
	}
	found, err := unit.Contract.Input.ValidateContext(ctx, named)
	if err != nil {
		return args, err
	}
	if len(found) > 0 {
		return args, fault.New(fault.Input, "the arguments break the contract of %s", quote(unit.Name)).
			WithHint("GET /capsules/%s/schema shows what it takes", unit.Name).WithFindings(found)
	}
	return args, nil
}

// withCustomaryNames has the names of files in `file` and `files` that are written with their
// directory: the callee gets those.
func withCustomaryNames(args contract.Payload) (contract.Payload, error) {
	refs := slices.DeleteFunc(contract.CustomaryFiles(args, contract.StageOutgoing), func(ref contract.FileRef) bool {
		return ref.Err != nil || !inOutgoing(ref.Text)
	})
	if len(refs) == 0 {
		return args, nil
	}
	return args.WithNames(refs)
}

// inOutgoing reports whether a text is a path in the caller's directory of files.
func inOutgoing(text string) bool {
	return strings.HasPrefix(text, string(contract.StageOutgoing)+"/")
}
