package api

import (
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// ApprovingTeam begins the name of an approver that is a team. That of a token begins as its identity does.
const ApprovingTeam = "team:"

// MaxApprovers bounds the approvers of a question.
const MaxApprovers = 32

var tokenRule = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// IsTokenName reports whether a text can be the name of a token.
func IsTokenName(name string) bool { return tokenRule().MatchString(name) }

// CheckApprovers returns an Input fault for a list that can't be the approvers of a question. Each is token:NAME or
// team:NAME.
func CheckApprovers(approvers []string) error {
	if len(approvers) > MaxApprovers {
		return fault.New(fault.Input, "there are more than %d approvers", MaxApprovers).
			WithHint("put their tokens into a team, and name that")
	}
	for _, approver := range approvers {
		token, isToken := strings.CutPrefix(approver, identityOfToken)
		team, isTeam := strings.CutPrefix(approver, ApprovingTeam)
		switch {
		case isToken && IsTokenName(token), isTeam && CheckTeam(team) == nil:
		default:
			return fault.New(fault.Input, "%s is not an approver", fault.Quote(approver)).
				WithHint("an approver is token:NAME or team:NAME, as `aod token ls` has them")
		}
	}
	return nil
}
