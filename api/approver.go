package api

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// ApprovingTeam begins the name of an approver that is a team, ApprovingGroup that of one that is a group of people at
// their issuer. That of a token or a person is its identity.
const (
	ApprovingTeam  = "team:"
	ApprovingGroup = "group:"
)

// maxGroup is how many bytes the name of a group has at most.
const maxGroup = 256

// IsGroup reports whether a text can be the name of a group.
func IsGroup(name string) bool {
	return name != "" && len(name) <= maxGroup && utf8.ValidString(name) && strings.TrimSpace(name) == name &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// MaxApprovers bounds the approvers of a question.
const MaxApprovers = 32

var tokenRule = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// IsTokenName reports whether a text can be the name of a token.
func IsTokenName(name string) bool { return tokenRule().MatchString(name) }

// CheckApprovers returns an Input fault for a list that can't be the approvers of a question. Each is token:NAME,
// user:SUBJECT, team:NAME or group:NAME.
func CheckApprovers(approvers []string) error {
	if len(approvers) > MaxApprovers {
		return fault.New(fault.Input, "there are more than %d approvers", MaxApprovers).
			WithHint("put their tokens into a team, and name that")
	}
	for _, approver := range approvers {
		token, isToken := strings.CutPrefix(approver, identityOfToken)
		team, isTeam := strings.CutPrefix(approver, ApprovingTeam)
		group, isGroup := strings.CutPrefix(approver, ApprovingGroup)
		switch {
		case isToken && IsTokenName(token), isTeam && CheckTeam(team) == nil:
		case isGroup && IsGroup(group), IsUser(approver):
		default:
			return fault.New(fault.Input, "%s is not an approver", fault.Quote(approver)).
				WithHint("an approver is token:NAME or team:NAME, as `aod token ls` has them, or user:SUBJECT or " +
					"group:NAME, as `aod whoami` shows them")
		}
	}
	return nil
}
