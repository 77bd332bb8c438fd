package handoff

import (
	"errors"
	"strconv"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Rule names a policy that a call can break, as it stands on the wire.
type Rule string

// The rules.
const (
	RuleGrant    Rule = "grant"    // a unit calls the units that its tools.yaml names
	RuleCycle    Rule = "cycle"    // a unit is on the path from the root once, or as often as its recursion allows
	RuleDepth    Rule = "depth"    // how deep calls may nest
	RuleCalls    Rule = "calls"    // how many calls there may be below a run
	RuleDeadline Rule = "deadline" // nothing is called after the caller's own deadline
	RuleSize     Rule = "size"     // of arguments and files
	RuleRecall   Rule = "recall"   // a call that is recalled asks for the same again
)

// Refusal is the fault of a call that a rule forbids. Its message says which rule, its hint
// says what would satisfy it.
type Refusal struct {
	Rule  Rule
	Fault *fault.Error
}

func (r *Refusal) Error() string { return r.Fault.Error() }

// Unwrap returns the fault, which has the refusal's kind.
func (r *Refusal) Unwrap() error { return r.Fault }

func refuse(rule Rule, because *fault.Error) error { return &Refusal{Rule: rule, Fault: because} }

// IsAboutCall reports whether an error is about the call, rather than about a server that
// can't make any at the moment.
func IsAboutCall(err error) bool {
	var refusal *Refusal
	return errors.As(err, &refusal) || httpwire.IsAboutRun(err)
}

// maxShown is how much of a name a message repeats, in bytes.
const maxShown = 200

// quote is fault.Quote with more of a name: file names are long.
func quote(s string) string { return strconv.Quote(fault.Clip(s, maxShown)) }
