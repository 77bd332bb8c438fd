package access

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// Scope is a part of what a server does for those who ask.
type Scope string

// The scopes. None is part of another one, but for Metrics of Read, Approve of Run, and Admin, which is all.
const (
	Read   Scope = "read"   // see runs, units and figures
	Run    Scope = "run"    // begin runs, end them, answer their questions
	Upload Scope = "upload" // bring units, set them back, remove them
	Admin  Scope = "admin"  // everything
	// see how the whole server fares, whoever owns what: what Read shows of that, too, as long as there are no teams
	Metrics Scope = "metrics"
	Approve Scope = "approve" // see questions, and answer them: a part of Run

	// Questions is to see questions. No token has it alone: Read and Approve have it.
	Questions Scope = "questions"
	// Work is to take runs from the server: see Tokens.AddWorker. It is part of no other one, Admin included.
	Work Scope = "work"
)

// Scopes are all that a token may have.
var Scopes = []Scope{Read, Run, Upload, Admin, Metrics, Approve}

// more are the scopes that have what another one has.
var more = map[Scope][]Scope{Metrics: {Read}, Approve: {Run}, Questions: {Read, Approve}}

// ParseScopes reads scopes, each a name or several with commas. The error is an Input fault.
func ParseScopes(texts []string) ([]Scope, error) {
	var scopes []Scope
	for name := range strings.SplitSeq(strings.Join(texts, ","), ",") {
		scope := Scope(strings.TrimSpace(name))
		if !slices.Contains(Scopes, scope) {
			return nil, fault.New(fault.Input, "there is no scope %s", fault.Quote(name)).
				WithHint("the scopes are %s", namesOfAll())
		}
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

// textsOf are scopes as clients see them.
func textsOf(scopes []Scope) []string {
	texts := make([]string, len(scopes))
	for i, scope := range scopes {
		texts[i] = string(scope)
	}
	return texts
}

// namesOfAll are the names of Scopes in a sentence.
func namesOfAll() string {
	names := textsOf(Scopes)
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Grant is what the holder of a token may do.
type Grant struct {
	Name   string // of the token, or "user:SUBJECT"
	Scopes []Scope
	Limits Limits
	Teams  []string // the first owns what is made; none: DefaultTeam, and with Admin every one
	// Units are those that it may use, by their names or by those that they have in its teams; none: all of its teams.
	Units   []string
	Expires time.Time // from then on it allows nothing; zero: never
	Guest   bool      // in a team that isn't its own: see In
	Groups  []string  // of a person, as questions name their approvers
}

// who is the holder of a grant in a sentence.
func (g Grant) who() string {
	if api.IsUser(g.Name) {
		return g.Name
	}
	return "the token " + strconv.Quote(g.Name)
}

// OfServer reports whether a grant is for the whole server, not for what some teams have.
func (g Grant) OfServer() bool { return len(g.Teams) == 0 && slices.Contains(g.Scopes, Admin) }

// teams are those to which a grant belongs, at least one.
func (g Grant) teams() []string {
	if len(g.Teams) == 0 {
		return []string{DefaultTeam}
	}
	return g.Teams
}

// reach is what the holder of a grant sees: with the scope read of everything that its teams have, else of its own.
func (g Grant) reach() Reach {
	switch {
	case g.OfWorker():
		return Reach{}
	case g.OfServer():
		return Reach{All: true, Units: g.Units}
	case g.Allows(Read) == nil:
		return Reach{Teams: g.teams(), Units: g.Units}
	case g.Name == "":
		return Reach{}
	}
	return Reach{Teams: g.teams(), By: g.Name, Units: g.Units}
}

// In returns the grant as one for a single team, which must be one of its own, or any for that of a server. The error
// is a Forbidden fault.
func (g Grant) In(team string) (Grant, error) {
	if api.CheckTeam(team) != nil || !slices.Contains(g.teams(), team) && !g.OfServer() {
		return Grant{}, fault.New(fault.Forbidden, "%s isn't one of the team %s", g.who(), fault.Quote(team)).
			WithHint("its teams are %s", strings.Join(g.teams(), ", "))
	}
	g.Guest = g.OfServer() // whoever may look into every team is no approver of one by that
	g.Teams = []string{team}
	return g, nil
}

// Limits are how much the holder of a token may ask for.
type Limits struct {
	Rate int `json:"rate,omitempty"` // requests in a minute; 0: no bound
	Runs int `json:"runs,omitempty"` // runs that it asked for and that go on or wait; 0: no bound
}

// maxLimit is the largest limit.
const maxLimit = 1_000_000

func (l Limits) check() error {
	if min(l.Rate, l.Runs) < 0 || max(l.Rate, l.Runs) > maxLimit {
		return fault.New(fault.Input, "a limit of a token is out of range").
			WithHint("name a number from 1 to %d, or 0 for no limit", maxLimit)
	}
	return nil
}

// Allows returns a Forbidden fault, which names the scope, if the grant doesn't have it.
func (g Grant) Allows(scope Scope) error {
	if scope == Work {
		return g.allowsWork()
	}
	if slices.Contains(g.Scopes, scope) || slices.Contains(g.Scopes, Admin) ||
		slices.ContainsFunc(more[scope], func(s Scope) bool { return slices.Contains(g.Scopes, s) }) {
		return nil
	}
	if scope == Questions {
		scope = Read
	}
	lacks := g.lacks(scope)
	if api.IsUser(g.Name) {
		return lacks.WithHint("the operator gives it to people by the setting oidc.scopes")
	}
	return lacks.WithHint("the operator makes one that has it: `aod token add NAME --scope %s`", scope)
}

func (g Grant) lacks(scope Scope) *fault.Error {
	return fault.New(fault.Forbidden, "%s lacks the scope %s", g.who(), scope)
}

// Holder tells the holders of grants apart: a token that was made again under its name with other
// scopes, teams or units has another one.
func (g Grant) Holder() string {
	parts := []string{g.Name}
	for _, list := range [][]string{textsOf(g.Scopes), g.Teams, g.Units} {
		parts = append(parts, strings.Join(list, ","))
	}
	return strings.Join(parts, " ")
}
