package access

import (
	"context"
	"slices"

	"github.com/agent-on-demand/aod/api"
)

// ApproverOf returns as whom the client of a context may be named as an approver, see api.CheckApprovers: as its token
// or as the person, as each of its teams, and as each of a person's groups. Who has the server's own token is nobody's
// approver.
func ApproverOf(ctx context.Context) []string {
	g := clientOf(ctx).grant
	if g.Name == "" || g.OfWorker() {
		return nil
	}
	names := []string{api.IdentityOf(g.Name)}
	for _, group := range g.Groups {
		names = append(names, api.ApprovingGroup+group)
	}
	if g.Guest || g.OfServer() {
		return names
	}
	for _, team := range g.teams() {
		names = append(names, api.ApprovingTeam+team)
	}
	return names
}

// IsApprover reports whether the client of a context is one of some approvers.
func IsApprover(ctx context.Context, approvers []string) bool {
	return slices.ContainsFunc(ApproverOf(ctx), func(name string) bool { return slices.Contains(approvers, name) })
}

// MayAnswer reports whether the client of a context may answer a question that has some approvers, which it sees:
// where there are none, everybody who has the scope. What the server does itself it may.
func MayAnswer(ctx context.Context, approvers []string) bool {
	if clientOf(ctx).trusted {
		return true
	}
	return May(ctx, Approve) && (len(approvers) == 0 || IsApprover(ctx, approvers))
}

// ReachOfQuestions returns whose questions the client of a context may know of, beside those that name it as an
// approver: with the scope Approve those of all its teams.
func ReachOfQuestions(ctx context.Context) Reach {
	c := clientOf(ctx)
	if c.reach.All || !slices.Contains(c.grant.Scopes, Approve) {
		return c.reach
	}
	return Reach{Teams: c.grant.teams()}
}
