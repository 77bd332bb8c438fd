package handoff

import (
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// rules say which calls a caller may make.
type rules struct {
	caller Caller
	limits Limits
}

// check refuses a unit that the caller may not call now.
func (r *rules) check(unit *Unit) error {
	for _, check := range []func(*Unit) error{r.checkCycle, r.checkDepth, r.checkDeadline} {
		if err := check(unit); err != nil {
			return err
		}
	}
	return nil
}

// checkGrant refuses a unit that the caller's tools.yaml doesn't name.
func (r *rules) checkGrant(target string) error {
	if slices.Contains(r.caller.Grants, target) {
		return nil
	}
	if path := r.caller.Path; path[len(path)-1].Flow {
		return refuse(RuleGrant, fault.New(fault.Forbidden, "the flow %s may not call %s", quote(r.caller.Unit),
			quote(target)).
			WithHint("name the unit in its flow.yaml; the operator can forbid it all the same (unit.%s.may_not_call)",
				r.caller.Unit))
	}
	name := "NAME"
	if api.CheckUnitName(target) == nil {
		name = target
	}
	return refuse(RuleGrant, fault.New(fault.Forbidden, "%s may not call %s: its tools.yaml grants no such handoff",
		quote(r.caller.Unit), quote(target)).
		WithHint("add {name: …, capsule: %s} to tools.yaml, or let the operator allow it (--may-call %s, or "+
			"unit.%s.may_call of a server); GET /capsules lists what may be called",
			name, name, r.caller.Unit))
}

// checkCycle refuses a unit that is on the path more often than its recursion allows. If
// versions of the unit differ in that, the strictest decides.
func (r *rules) checkCycle(unit *Unit) error {
	stands, allowed := 0, unit.Recursion
	for _, step := range r.caller.Path {
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
func (r *rules) checkDepth(*Unit) error {
	depth := r.caller.Depth() + 1
	if depth > r.limits.Depth {
		return refuse(RuleDepth, fault.New(fault.Conflict, "calls may nest %d deep, and this would be one more",
			r.limits.Depth).
			WithHint("call from further up; whoever runs this server can raise its limit of depth"))
	}
	for i, step := range r.caller.Path {
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
func (r *rules) checkDeadline(*Unit) error {
	if r.caller.Deadline.IsZero() || time.Now().Before(r.caller.Deadline) {
		return nil
	}
	return refuse(RuleDeadline,
		fault.New(fault.Deadline, "the time of %s is up, so that nothing can be called any more", quote(r.caller.Unit)).
			WithHint("call earlier, or raise limits.timeout in its agent.yaml"))
}
