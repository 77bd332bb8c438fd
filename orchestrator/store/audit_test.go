package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/access"
)

func asking(ctx context.Context) context.Context {
	grant := access.Grant{Name: "ci", Scopes: []access.Scope{access.Run}, Teams: []string{"a"}}
	return access.WithGrant(access.WithOrigin(ctx, access.Origin{Address: "10.0.0.1", Trace: "t"}), grant)
}

// A row of the audit is stored with the change that it is about, once, or not at all.
func TestARowOfTheAuditComesWithItsChange(t *testing.T) {
	t.Parallel()
	s := open(t)
	did := Audited{Team: "a", Verb: "start", Noun: "run", Object: "x", Detail: strings.Repeat("d", 2*maxDetail)}
	rows := func() []Audited {
		all, err := s.Audits.List(t.Context(), AuditFilter{})
		must(t, err)
		return all
	}
	ctx := Audit(asking(t.Context()), did)
	refused := errors.New("refused")
	if err := s.core.change(ctx, "fail", func(context.Context, *transaction) error { return refused }); err == nil {
		t.Fatal("no error")
	}
	if got := rows(); len(got) != 0 {
		t.Errorf("of a change that failed there is %+v", got)
	}
	for range 2 {
		must(t, s.Runs.Insert(ctx, aRun(1), Key{}))
	}
	must(t, s.Runs.Insert(Audit(access.WithServer(t.Context()), did), aRun(2), Key{}))
	want := []Audited{{
		Seq: 1, Team: "a", Identity: "token:ci", Address: "10.0.0.1", Verb: "start", Noun: "run", Object: "x",
		Detail: strings.Repeat("d", maxDetail), Result: Done, Count: 1, Trace: "t",
	}}
	got := rows()
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "At" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	if time.Since(got[0].At) > time.Minute {
		t.Errorf("it was at %v", got[0].At)
	}
}

func TestTheAuditIsReadByItsIndexes(t *testing.T) {
	t.Parallel()
	s := open(t)
	var rows []Audited
	for n := range 3000 {
		rows = append(rows, Audited{
			At: epoch.Add(time.Duration(n) * time.Second), Team: []string{"default", "a", "b"}[n%3], Identity: fmt.Sprint("token:", n%7),
			Verb: "start", Noun: "run", Object: fmt.Sprint(n % 11), Result: Done, Count: 1,
		})
	}
	must(t, s.Audits.Add(t.Context(), rows...))
	must(t, s.Audits.Trim(t.Context(), epoch.Add(1000*time.Second)))
	for name, c := range map[string]struct {
		f    AuditFilter
		want func(n int) bool
	}{
		"all":         {AuditFilter{}, func(int) bool { return true }},
		"of one":      {AuditFilter{Identity: "token:3"}, func(n int) bool { return n%7 == 3 }},
		"to one":      {AuditFilter{Object: "5"}, func(n int) bool { return n%11 == 5 }},
		"of a team":   {AuditFilter{Owned: Owned{Teams: []string{"a"}, By: "no matter"}}, func(n int) bool { return n%3 == 1 }},
		"since":       {AuditFilter{Since: epoch.Add(2500 * time.Second)}, func(n int) bool { return n >= 2500 }},
		"all of that": {AuditFilter{Identity: "token:3", Object: "5", Owned: Owned{Teams: []string{"a"}}, Since: epoch.Add(1500 * time.Second)}, func(n int) bool { return n%7 == 3 && n%11 == 5 && n%3 == 1 && n >= 1500 }},
		"of nobody":   {AuditFilter{Since: epoch.Add(time.Hour)}, func(int) bool { return false }},
	} {
		var want, got []int64
		for n := 2999; n >= 1000; n-- {
			if c.want(n) {
				want = append(want, int64(n)+1)
			}
		}
		for c.f.Limit = 100; ; {
			page, err := s.Audits.List(t.Context(), c.f)
			must(t, err)
			for _, row := range page {
				got = append(got, row.Seq)
			}
			if len(page) < c.f.Limit {
				break
			}
			c.f.Before = s.Audits.Behind(page[len(page)-1])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
