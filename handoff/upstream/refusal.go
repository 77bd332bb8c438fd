package upstream

import (
	"context"
	"errors"
	"net/http"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// The rules under which a request is refused, or fails.
const (
	RuleUpstream    = "upstream"    // 403: the unit may not use it, or there is none
	RuleMethod      = "method"      // 403
	RulePath        = "path"        // 400: it leads nowhere for sure; 403: it isn't on the list
	RuleRequest     = "request"     // 400: it can't be passed on
	RuleBusy        = "busy"        // 503: too many under way
	RuleKey         = "key"         // 503: it can't be used; 502: the answer holds it
	RuleEncoding    = "encoding"    // 502: the answer can't be looked through for the key
	RuleUnreachable = "unreachable" // 502
	RuleSilent      = "silent"      // 504
	RuleDeadline    = "deadline"    // 504: the run's
)

// Refusal is an answer of ours: the rule, why, and what to do.
type Refusal struct {
	Status int
	Rule   string
	Fault  *fault.Error
}

func refuse(status int, rule string, kind fault.Kind, format string, args ...any) *Refusal {
	return &Refusal{Status: status, Rule: rule, Fault: fault.New(kind, format, args...)}
}

func (r *Refusal) hint(format string, args ...any) *Refusal {
	r.Fault = r.Fault.WithHint(format, args...)
	return r
}

func (r *Refusal) because(err error) *Refusal {
	r.Fault.Err = err
	return r
}

// answer writes a refusal that nothing was sent before.
func (r *Refusal) answer(w http.ResponseWriter) {
	p := httpwire.ProblemOf(r.Fault)
	p.Status, p.Rule = r.Status, r.Rule
	_ = httpwire.ReplyProblem(w, p) // whoever asked may be gone
}

// lost is the refusal of a request without an answer.
func (s *service) lost(run, request context.Context, err error) *Refusal {
	switch {
	case errors.Is(context.Cause(run), context.DeadlineExceeded):
		return refuse(http.StatusGatewayTimeout, RuleDeadline, fault.Deadline,
			"the run's time was up before the upstream %s answered", s.name).
			hint("raise limits.timeout, or ask for less").because(err)
	case run.Err() != nil:
		return refuse(http.StatusServiceUnavailable, RuleBusy, fault.Unavailable,
			"the run ends, and the request to the upstream %s with it", s.name).
			hint("ask again, if the run goes on").because(err)
	case errors.Is(context.Cause(request), httpwire.ErrSilent):
		return refuse(http.StatusGatewayTimeout, RuleSilent, fault.Unavailable,
			"the upstream %s doesn't answer in time", s.name).hint("ask again later").because(err)
	}
	return refuse(http.StatusBadGateway, RuleUnreachable, fault.Unavailable, "the upstream %s can't be reached",
		s.name).
		hint("ask again later; whoever runs AOD finds the cause in its log").because(err)
}
