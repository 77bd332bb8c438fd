package handoff

import (
	"strconv"

	"github.com/agent-on-demand/aod/fault"
)

// Rule names a policy that a call can break, as it stands on the wire.
type Rule string

// The rules.
const (
	RuleGrant    Rule = "grant"    // whom a unit may call stands in its tools.yaml
	RuleCycle    Rule = "cycle"    // a unit doesn't stand twice on the path from the root
	RuleDepth    Rule = "depth"    // how deep calls may nest
	RuleCalls    Rule = "calls"    // how many calls there may be below a run
	RuleDeadline Rule = "deadline" // nothing is called after the caller's own deadline
	RuleSize     Rule = "size"     // of arguments and files
)

// Refusal is a fault that a rule made. Its message says which rule, its hint what would
// satisfy it.
type Refusal struct {
	Rule  Rule
	Fault *fault.Error
}

func (r *Refusal) Error() string { return r.Fault.Error() }

// Unwrap returns the fault, which has the refusal's kind.
func (r *Refusal) Unwrap() error { return r.Fault }

func refuse(rule Rule, because *fault.Error) error { return &Refusal{Rule: rule, Fault: because} }

// maxShown bounds what a message quotes of what a capsule sent.
const maxShown = 200 // bytes

// quote shows a name to the one who gave it: bounded, and with nothing in it that a
// terminal would obey.
func quote(s string) string { return strconv.Quote(fault.Clip(s, maxShown)) }
