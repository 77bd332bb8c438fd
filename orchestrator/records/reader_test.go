package records_test

import (
	"slices"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/records"
)

func TestAFilterShowsNobodyWhatOthersMade(t *testing.T) {
	t.Parallel()
	own := access.WithGrant(t.Context(), access.Grant{Name: "ci", Scopes: []access.Scope{access.Run}})
	for by, want := range map[string][]string{"": {"ci"}, "ci": {"ci", "ci"}, "ada": {"ci", "ada"}} {
		if got := records.FilterOf(own, api.Filter{By: by}).MadeBy; !slices.Equal(got, want) {
			t.Errorf("of %q it lists what is made by all of %q", by, got)
		}
	}
	if got := records.FilterOf(t.Context(), api.Filter{By: "ada"}).MadeBy; !slices.Equal(got, []string{"ada"}) {
		t.Errorf("who sees all has what is made by %q", got)
	}
}
