package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

// What was used adds up to what each run and each call took, by whatever it is grouped, and stays when runs are
// removed.
func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	s := open(t)
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	type key struct{ team, by, unit, outcome, model, day string }
	want := map[key]Usage{}
	add := func(k key, u Usage) {
		sum := want[k]
		sum.Runs, sum.Calls, sum.Tokens, sum.Cost = sum.Runs+u.Runs, sum.Calls+u.Calls, sum.Tokens+u.Tokens, sum.Cost+u.Cost
		sum.Waited, sum.Worked, sum.CPU = sum.Waited+u.Waited, sum.Worked+u.Worked, sum.CPU+u.CPU
		want[k] = sum
	}
	dayOf := func(at time.Time) string { return at.UTC().Format(time.DateOnly) }
	var ids []string
	for n := range 60 {
		r := aRun(n)
		r.CreatedAt = epoch.Add(time.Duration(n) * 3 * time.Hour)
		r.Team, r.MadeBy, r.Unit, r.StartedAt = pick("default", "a"), pick("", "ci", "ops"), pick("u", "v"), time.Time{}
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
		for range random.IntN(3) {
			model := pick("small", "large")
			c := ModelCall{At: r.CreatedAt.Add(time.Hour), Tokens: 5000, Cost: 9_999_999_999}
			number, err := s.ModelCalls.Add(t.Context(), r.ID, c)
			must(t, err)
			c.N, c.Tokens, c.Cost, c.Settled = number, random.Int64N(1000), random.Int64N(1_000_000_000), true
			c.Data = fmt.Appendf(nil, `{"id":"x","call":{"model":%q}}`, model)
			must(t, s.ModelCalls.Save(t.Context(), r.ID, c))
			must(t, s.ModelCalls.Save(t.Context(), r.ID, c)) // again, as after a lost answer
			add(key{r.Team, r.MadeBy, r.Unit, "", model, dayOf(c.At)}, Usage{Calls: 1, Tokens: c.Tokens, Cost: c.Cost})
		}
		r.StartedAt = r.CreatedAt.Add(time.Duration(random.IntN(5000)) * time.Millisecond)
		r.State, r.Outcome, r.Finished = "completed", pick("success", "capsule_error"), true
		r.FinishedAt = r.StartedAt.Add(time.Duration(random.IntN(9000)) * time.Millisecond)
		cpu := time.Duration(0)
		switch n % 3 {
		case 1:
			r.Record, cpu = []byte(`{"usage":{"cpu_seconds":1.5},"attempts":[{"usage":{"cpu_seconds":0.25}},{"number":2}]}`), 1750*time.Millisecond
		case 2:
			r.Record = []byte("garbage")
		}
		must(t, s.Runs.Save(t.Context(), r))
		must(t, s.Runs.Save(t.Context(), r))
		add(key{r.Team, r.MadeBy, r.Unit, r.Outcome, "", dayOf(r.FinishedAt)}, Usage{Runs: 1, Waited: r.StartedAt.Sub(r.CreatedAt), Worked: r.FinishedAt.Sub(r.StartedAt), CPU: cpu})
		ids = append(ids, r.ID)
	}
	must(t, s.Runs.Delete(t.Context(), ids[:30]...))
	for _, f := range []UsageFilter{
		{},
		{By: []string{"team"}},
		{By: []string{"unit", "identity"}},
		{By: []string{"model"}},
		{By: []string{"outcome", "team"}},
		{By: []string{"day"}, Since: epoch.Add(48 * time.Hour), Until: epoch.Add(120 * time.Hour)},
		{By: []string{"team", "identity", "unit", "model", "day"}, Owned: Owned{Teams: []string{"a"}}},
		{By: []string{"unit"}, Owned: Owned{Teams: []string{"a"}, By: "ci"}},
		{By: []string{"unit"}, Owned: Owned{Teams: []string{"nobody"}}},
	} {
		grouped := map[string]bool{}
		for _, by := range f.By {
			grouped[by] = true
		}
		of := func(by, value string) string {
			if grouped[by] {
				return value
			}
			return ""
		}
		sums := map[key]Usage{}
		for k, u := range want {
			day, err := time.Parse(time.DateOnly, k.day)
			must(t, err)
			if !owns(f.Owned, Run{Team: k.team, MadeBy: k.by}) || grouped["model"] && k.model == "" || grouped["outcome"] && k.outcome == "" ||
				!f.Since.IsZero() && day.Before(f.Since.Truncate(24*time.Hour)) || !f.Until.IsZero() && !day.Before(f.Until.Truncate(24*time.Hour)) {
				continue
			}
			g := key{of("team", k.team), of("identity", k.by), of("unit", k.unit), of("outcome", k.outcome), of("model", k.model), of("day", k.day)}
			sum := sums[g]
			sum.Runs, sum.Calls, sum.Tokens, sum.Cost = sum.Runs+u.Runs, sum.Calls+u.Calls, sum.Tokens+u.Tokens, sum.Cost+u.Cost
			sum.Waited, sum.Worked, sum.CPU = sum.Waited+u.Waited, sum.Worked+u.Worked, sum.CPU+u.CPU
			sums[g] = sum
		}
		got := map[key]Usage{}
		rows, err := s.Usages.Sums(t.Context(), f)
		must(t, err)
		for _, u := range rows {
			k := key{u.Team, u.MadeBy, u.Unit, u.Outcome, u.Model, ""}
			if !u.Day.IsZero() {
				k.day = dayOf(u.Day)
			}
			got[k] = Usage{Runs: u.Runs, Calls: u.Calls, Tokens: u.Tokens, Cost: u.Cost, Waited: u.Waited, Worked: u.Worked, CPU: u.CPU}
		}
		if diff := cmp.Diff(sums, got); diff != "" {
			t.Errorf("by %v: %s", f.By, diff)
		}
	}
	if _, err := s.Usages.Sums(t.Context(), UsageFilter{By: []string{"record"}}); !fault.Is(err, fault.Input) {
		t.Errorf("by what isn't there: %v", err)
	}
}
