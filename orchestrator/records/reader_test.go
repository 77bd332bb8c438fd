package records_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

func TestAFilterShowsNobodyWhatOthersMade(t *testing.T) {
	t.Parallel()
	run, reader := []access.Scope{access.Run}, []access.Scope{access.Read}
	for name, c := range map[string]struct {
		grant access.Grant
		want  store.Owned
	}{
		"its own":         {access.Grant{Name: "ci", Scopes: run}, store.Owned{Teams: []string{"default"}, By: "ci"}},
		"its team's":      {access.Grant{Name: "ci", Scopes: reader, Teams: []string{"a", "b"}}, store.Owned{Teams: []string{"a", "b"}}},
		"nobody's":        {access.Grant{}, store.Owned{Teams: []string{"-"}}},
		"everybody's":     {access.Grant{Scopes: []access.Scope{access.Admin}}, store.Owned{}},
		"the team's head": {access.Grant{Scopes: []access.Scope{access.Admin}, Teams: []string{"a"}}, store.Owned{Teams: []string{"a"}}},
	} {
		got := records.FilterOf(access.WithGrant(t.Context(), c.grant), api.Filter{By: "ada"})
		if diff := cmp.Diff(store.Filter{Owned: c.want, MadeBy: "ada", States: []string{}}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := records.FilterOf(trusted.Context(t), api.Filter{}).Owned; got.Teams != nil {
		t.Errorf("the server itself sees %v", got)
	}
	if got := records.FilterOf(t.Context(), api.Filter{}).Owned; len(got.Teams) != 1 {
		t.Errorf("who doesn't say for whom it is sees %v", got)
	}
}
