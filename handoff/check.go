package handoff

import (
	"context"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
)

// permit returns the unit, if the caller may call it, here and now.
func (h *Handler) permit(ctx context.Context, target string) (*Unit, error) {
	if err := h.granted(target); err != nil {
		return nil, err
	}
	unit, err := h.runs.Unit(ctx, target)
	if err != nil {
		return nil, err
	}
	for _, check := range []func(*Unit) error{h.uncycled, h.shallow, h.inTime} {
		if err := check(unit); err != nil {
			return nil, err
		}
	}
	return unit, nil
}

func (h *Handler) granted(target string) error {
	if slices.Contains(h.caller.Grants, target) {
		return nil
	}
	name := "NAME"
	if api.CheckUnitName(target) == nil {
		name = target
	}
	return refuse(RuleGrant, fault.New(fault.Forbidden, "%s may not call %s: its tools.yaml grants no such handoff", quote(h.caller.Unit), quote(target)).
		WithHint("add {name: …, capsule: %s} to tools.yaml; GET /capsules lists what may be called", name))
}

// uncycled refuses a unit that stands on the path already more often than its recursion
// allows. Where versions of it differ, the strictest decides.
func (h *Handler) uncycled(unit *Unit) error {
	stands, allowed := 0, unit.Recursion
	for _, step := range h.caller.Path {
		if step.Unit == unit.Name {
			stands++
			allowed = min(allowed, step.Recursion)
		}
	}
	if stands <= allowed {
		return nil
	}
	return refuse(RuleCycle, fault.New(fault.Conflict, "%s stands on the path of calls that leads here already, and its recursion is %d", quote(unit.Name), allowed).
		WithHint("break the circle, or write recursion: %d into its agent.yaml", stands))
}

// shallow refuses what would lie deeper than the operator, or a run on the path, allows.
func (h *Handler) shallow(*Unit) error {
	depth := h.caller.depth() + 1
	if depth > h.limits.Depth {
		return refuse(RuleDepth, fault.New(fault.Conflict, "calls may nest %d deep, and this would be one more", h.limits.Depth).
			WithHint("call from further up; whoever runs this server can raise its limit of depth"))
	}
	for i, step := range h.caller.Path {
		if budget := step.Budgets.Depth; budget > 0 && depth-i > budget {
			return refuse(RuleDepth, fault.New(fault.Conflict, "calls below %s may nest %d deep, and this would be one more", quote(step.Unit), budget).
				WithHint("raise budgets.depth in the agent.yaml of %s, or call from further up", quote(step.Unit)))
		}
	}
	return nil
}

func (h *Handler) inTime(*Unit) error {
	if h.caller.Deadline.IsZero() || time.Now().Before(h.caller.Deadline) {
		return nil
	}
	return refuse(RuleDeadline, fault.New(fault.Deadline, "the time of %s is up, so that nothing can be called any more", quote(h.caller.Unit)).
		WithHint("call earlier, or raise limits.timeout in its agent.yaml"))
}

// arguments reads them and holds them against the callee's contract.
func (h *Handler) arguments(unit *Unit, asked ask) (contract.Payload, error) {
	args, err := contract.Decode(asked.args, h.limits.ArgsBytes)
	if fault.Is(err, fault.TooLarge) {
		return args, refuse(RuleSize, fault.Public(err))
	}
	if err != nil {
		return args, err
	}
	if args, err = asked.nameFiles(unit.Contract.Input, args); err != nil {
		return args, err
	}
	if found := unit.Contract.Input.Validate(args); len(found) > 0 {
		return args, fault.New(fault.Input, "the arguments break the contract of %s", quote(unit.Name)).
			WithHint("GET /capsules/%s/schema shows what it takes", unit.Name).WithFindings(found)
	}
	return args, nil
}
