package egress

import (
	"net/http"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Rules that a request can break, as they stand on the wire and in events.
const (
	RuleList    = "egress"         // a unit reaches the hosts that it lists
	RulePrivate = "egress_private" // a name leads to a public address
	RuleTLS     = "egress_tls"     // a tunnel carries TLS for the host that it was opened to
	RuleTunnels = "egress_tunnels" // how many tunnels a run has at once
)

// refusal is a request that a rule forbids.
type refusal struct {
	rule  string
	fault *fault.Error
}

func (r *refusal) Error() string { return r.fault.Error() }

// Unwrap returns the fault, which says what would allow the request.
func (r *refusal) Unwrap() error { return r.fault }

func refuse(rule string, because *fault.Error) error { return &refusal{rule, because} }

// problemOf is what a program may know of an error.
func problemOf(err error) httpwire.Problem {
	p := httpwire.ProblemOf(err)
	if r, is := err.(*refusal); is { //nolint:errorlint // nothing wraps one
		p.Rule = r.rule
	}
	return p
}

// notListed refuses what the list doesn't allow, with the lines that would.
func (t Terms) notListed(to target) error {
	r := outside.Rule{Host: to.host, Port: to.port, Plain: to.plain}
	line := outside.List{r}.String()
	because := fault.New(fault.Forbidden, "%q may not reach %s: its agent.yaml doesn't list it", t.Unit, r)
	switch {
	case !t.Bounded || t.Cap.Covers(r):
		return refuse(RuleList, because.WithHint("allow it in agent.yaml: egress: %s", line))
	case t.Allowed.Covers(r): // the operator took it away after it was loaded
		because = fault.New(fault.Forbidden, "%q may not reach %s: the operator doesn't allow it", t.Unit, r)
		return refuse(RuleList, because.WithHint("in the server's file: unit.%s.policy.egress: %s", t.Unit, line))
	}
	return refuse(RuleList,
		because.WithHint("allow it in agent.yaml: egress: %s, and in the server's file: unit.%s.policy.egress: %s",
			line, t.Unit, line))
}

// notPublicAt refuses a name that leads to somebody's own network. The address isn't told.
func notPublicAt(to target) error {
	return refuse(RulePrivate, fault.New(fault.Forbidden, "%s leads to no public address", to).
		WithHint("the operator can allow it in the server's file: egress_private: [%s] (for a command here: "+
			"AOD_EGRESS_PRIVATE=%s)", to.host, to.host))
}

// answer is the one place where an error becomes an answer. A connection is of no use behind one
// that was to become a tunnel.
func answer(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Connection", "close")
	p := problemOf(err)
	if r.Method == http.MethodConnect && sayRefused(w, p) {
		return
	}
	_ = httpwire.ReplyProblem(w, p) // whoever doesn't read it has gone
}
