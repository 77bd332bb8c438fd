package access

import (
	"slices"
	"testing"
)

func TestAsWhomAClientMayBeNamed(t *testing.T) {
	t.Parallel()
	ops := Grant{Name: "ops", Scopes: []Scope{Admin}}
	lent, err := ops.In("a")
	if err != nil {
		t.Fatal(err)
	}
	of := Grant{Name: "ada", Scopes: []Scope{Approve}, Teams: []string{"a", "b"}}
	inB, err := of.In("b")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		grant Grant
		want  []string
	}{
		"the server's own token":         {Grant{Scopes: []Scope{Admin}}, nil},
		"nobody":                         {Grant{}, nil},
		"a token of the whole server":    {ops, []string{"token:ops"}},
		"the same in a team":             {lent, []string{"token:ops"}},
		"a token of two teams":           {of, []string{"token:ada", "team:a", "team:b"}},
		"the same in one":                {inB, []string{"token:ada", "team:b"}},
		"a person":                       {Grant{Name: "user:ada", Scopes: []Scope{Run}, Teams: []string{"a"}, Groups: []string{"/legal"}}, []string{"user:ada", "group:/legal", "team:a"}},
		"a token without a team":         {Grant{Name: "ci", Scopes: []Scope{Run}}, []string{"token:ci", "team:default"}},
		"the administrator of one's own": {Grant{Name: "eve", Scopes: []Scope{Admin}, Teams: []string{"a"}}, []string{"token:eve", "team:a"}},
	} {
		if got := ApproverOf(WithGrant(t.Context(), c.grant)); !slices.Equal(got, c.want) {
			t.Errorf("%s is %q, want %q", name, got, c.want)
		}
	}
	for _, scope := range []Scope{Read, Upload, Metrics} {
		if MayAnswer(WithGrant(t.Context(), Grant{Name: "x", Scopes: []Scope{scope}}), []string{"token:x"}) {
			t.Errorf("the scope %s answers", scope)
		}
	}
}
