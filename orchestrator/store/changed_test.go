package store

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

var knownStates = []string{"idle", "starting", "running", "completed", "failed", "timeout", "cancelled"}

// changing is a world of runs that change, and what a list of them should be.
type changing struct {
	t      *testing.T
	s      *Store
	random *rand.Rand
	clock  time.Time
	runs   map[string]Run
	order  []string // of the changes, the latest first, each run once
}

func newChanging(t *testing.T) *changing {
	t.Helper()
	return &changing{t: t, s: open(t), random: rand.New(rand.NewPCG(1, 2)), clock: epoch, runs: map[string]Run{}}
}

func (c *changing) pick(of ...string) string { return of[c.random.IntN(len(of))] }

// stateOf is the event of a run that enters its state. The clock goes back now and then.
func (c *changing) stateOf() Event {
	c.clock = c.clock.Add(time.Duration(c.random.IntN(3)-1) * time.Second)
	e := event("state")
	e.At = c.clock
	return e
}

func (c *changing) insert() {
	r := aRun(len(c.runs))
	r.State, r.Unit, r.Context, r.MadeBy = "idle", c.pick("u1", "u2", "u3"), c.pick("", "c1", "c2"), c.pick("", "ci", "ops")
	r.Team = []string{"default", "t"}[len(c.runs)%2]
	must(c.t, c.s.Runs.Insert(c.t.Context(), r, Key{}, c.stateOf()))
	c.noted(r)
	child := aRun(0)
	child.Parent, child.Root = r.ID, r.ID
	must(c.t, c.s.Runs.Insert(c.t.Context(), child, Key{}, event("state")))
}

func (c *changing) change() {
	id := c.order[c.random.IntN(len(c.order))]
	r := c.runs[id]
	if r.Finished {
		return
	}
	if r.State = c.pick(knownStates...); r.State == "completed" {
		r.Finished, r.FinishedAt = true, r.CreatedAt.Add(time.Minute)
	}
	must(c.t, c.s.Runs.Save(c.t.Context(), r, event("progress"), c.stateOf()))
	must(c.t, c.s.Events.Append(c.t.Context(), id, event("progress")))
	c.noted(r)
}

func (c *changing) noted(r Run) {
	c.runs[r.ID] = r
	c.order = append([]string{r.ID}, slices.DeleteFunc(c.order, func(id string) bool { return id == r.ID })...)
}

// wanted are the ids that a filter chooses now.
func (c *changing) wanted(f ChangedFilter) []string {
	var ids []string
	for _, id := range c.order {
		r := c.runs[id]
		if (len(f.Units) == 0 || slices.Contains(f.Units, r.Unit)) && (len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
			(f.Context == "" || f.Context == r.Context) && owns(f.Owned, r) {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestPagesOfChangesHaveNoGapAndNoRepetitionWhileRunsChange(t *testing.T) {
	c := newChanging(t)
	for range 60 {
		c.insert()
	}
	for range 60 {
		c.change()
	}
	for i, f := range []ChangedFilter{
		{},
		{Units: []string{"u1"}},
		{Units: []string{"u1", "u3", "u1"}, States: []string{"idle", "running"}},
		{Context: "c1"},
		{Context: "c2", States: []string{"completed", "failed"}, Units: []string{"u2"}},
		{States: []string{"starting"}},
		{Owned: Owned{By: "ci"}},
		{Owned: Owned{By: "ops"}, Units: []string{"u1", "u2"}, States: []string{"idle", "running"}},
		{Owned: Owned{By: "ci"}, Context: "c1"},
		{Owned: Owned{By: "nobody"}},
		{Owned: Owned{Teams: []string{"t"}}},
		{Owned: Owned{Teams: []string{"default"}}, States: []string{"idle", "completed"}},
		{Owned: Owned{Teams: []string{"t", "default"}, By: "ci"}},
		{Owned: Owned{Teams: []string{"nobody"}}},
	} {
		for _, f.Limit = range []int{[]int{7, 1}[i%2], 100} {
			f.Known, f.Cursor = knownStates, ""
			want := c.wanted(f)
			var got []string
			for {
				page, err := c.s.Runs.Changed(t.Context(), f)
				must(t, err)
				if int(page.Total) != len(want) {
					t.Fatalf("%+v: %d in all, want %d", f, page.Total, len(want))
				}
				for _, r := range page.Runs {
					got = append(got, r.ID)
				}
				if page.Next == "" {
					break
				}
				f.Cursor = page.Next
				c.insert()
				for range 5 {
					c.change()
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%+v: %s", f, diff)
			}
		}
	}
}

func TestAListOfChangesBeginsAtATime(t *testing.T) {
	s := open(t)
	for n := range 5 {
		e := event("state")
		e.At = epoch.Add(time.Duration(n) * time.Hour)
		must(t, s.Runs.Insert(t.Context(), aRun(n), Key{}, e))
	}
	page, err := s.Runs.Changed(t.Context(), ChangedFilter{Known: knownStates, Since: epoch.Add(2 * time.Hour), Limit: 2})
	must(t, err)
	if page.Total != 3 || len(page.Runs) != 2 || page.Next == "" || page.Runs[0].Record == nil {
		t.Errorf("%+v", page)
	}
}

// What follows a run's end has it keep its place.
func TestAQuietStateIsNoChange(t *testing.T) {
	s := open(t)
	first := aRun(0)
	for _, r := range []Run{first, aRun(1)} {
		must(t, s.Runs.Insert(t.Context(), r, Key{}, event("state")))
	}
	first.State, first.Finished, first.FinishedAt = "completed", true, first.CreatedAt.Add(time.Minute)
	quiet := event("state")
	quiet.At, quiet.Quiet = epoch.Add(time.Hour), true
	must(t, s.Runs.Save(t.Context(), first, quiet, event("end")))
	page, err := s.Runs.Changed(t.Context(), ChangedFilter{Known: knownStates})
	must(t, err)
	if len(page.Runs) != 2 || page.Runs[1].ID != first.ID || page.Runs[1].State != "completed" {
		t.Errorf("%+v", page.Runs)
	}
	if late, err := s.Runs.Changed(t.Context(), ChangedFilter{Known: knownStates, Since: quiet.At}); err != nil || late.Total != 0 {
		t.Errorf("%+v, %v", late, err)
	}
	events, err := s.Events.List(t.Context(), first.ID, 0, 0)
	must(t, err)
	if len(events) != 3 {
		t.Errorf("%d events", len(events))
	}
}

func TestAListOfChangesWalksNoTable(t *testing.T) {
	s := open(t)
	insertMany(t, s, 2000, func(_ int, r *Run) { r.Unit, r.Context, r.MadeBy = "u", "c", "m" })
	for _, want := range []struct {
		index string
		f     ChangedFilter
	}{
		{"state", ChangedFilter{}},
		{"unit_state", ChangedFilter{Units: []string{"u1", "u2"}}},
		{"context", ChangedFilter{Context: "c"}},
		{"context", ChangedFilter{Context: "c", Units: []string{"u"}, States: []string{"idle"}}},
		{"state", ChangedFilter{States: []string{"idle", "running"}, Since: epoch}},
		{"unit_state", ChangedFilter{Units: []string{"u"}, States: []string{"idle"}}},
		{"maker_state", ChangedFilter{Owned: Owned{By: "m"}}},
		{"context", ChangedFilter{Owned: Owned{By: "m"}, Context: "c", Units: []string{"u"}, States: []string{"idle"}}},
		{"maker_state", ChangedFilter{Owned: Owned{By: "m"}, Units: []string{"u1", "u2"}, States: []string{"idle"}}},
		{"team_state", ChangedFilter{Owned: Owned{Teams: []string{"t"}}}},
		{"state", ChangedFilter{Owned: Owned{Teams: []string{"default"}}}},
	} {
		f, index := want.f, "SEARCH runs USING INDEX runs_changed_by_"+want.index+" ("
		f.Known = knownStates
		from := snapshot{at: 1, newest: 1, place: position{1, 1}}
		got := planOf(t, s, union(f.unchangedSince(from, columns)...).page(9))
		if strings.Contains(got, "SCAN") || strings.Contains(got, "TEMP B-TREE") || !strings.Contains(got, index) {
			t.Errorf("%+v, what has not changed:\n%s", f, got)
		}
		got = planOf(t, s, f.changedSince(from, columns))
		if strings.Contains(got, "SCAN") || strings.Contains(got, "TEMP B-TREE") || !strings.Contains(got, index) {
			t.Errorf("%+v, what has:\n%s", f, got)
		}
		got = planOf(t, s, union(append(f.unchangedSince(from, columns), f.changedSince(from, columns))...).page(9))
		if strings.Contains(got, "SCAN") || strings.Count(got, "TEMP B-TREE") != 1 {
			t.Errorf("%+v, both, of which the few that have changed are sorted:\n%s", f, got)
		}
	}
	got := plan(t, s, toldOf("message"), "x", 1, 1)
	if !strings.Contains(got, "USING INDEX events_told (run=? AND type=? AND seq>?)") || strings.Contains(got, "TEMP B-TREE") {
		t.Errorf("messages:\n%s", got)
	}
}

func TestWhatIsNoListOfChanges(t *testing.T) {
	s := open(t)
	forged := base64.RawURLEncoding.EncodeToString(append([]byte{snapshotForm}, make([]byte, 40)...))
	short := s.core.seal.text(append([]byte{snapshotForm}, make([]byte, 39)...))
	late := snapshot{at: 1, place: position{at: 2}}.cursor(s.core.seal)
	for _, f := range []ChangedFilter{{Limit: 101}, {Limit: -1}, {Units: make([]string, 33)}, {States: make([]string, 33)}, {Cursor: "x"}, {Cursor: forged}, {Cursor: short}, {Cursor: late}, {Cursor: s.core.seal.cursor(position{})}} {
		f.Known = knownStates
		_, err := s.Runs.Changed(t.Context(), f)
		wantKind(t, err, fault.Input)
	}
}

func TestContextsAreListed(t *testing.T) {
	s := open(t)
	for n := range 4 {
		r := aRun(n)
		r.Context = fmt.Sprint("c", n%2)
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
	}
	for _, f := range []Filter{{Context: "c1"}, {Context: "c1", Metadata: map[string]string{}}, {Context: "c1", Unit: "hello", States: []string{"running"}}} {
		if got := planOf(t, s, f.runs(f.candidates()[0], position{1, 1}).page(50)); !strings.Contains(got, "runs_by_context") || strings.Contains(got, "TEMP B-TREE") {
			t.Error(got)
		}
		page, err := s.Runs.List(t.Context(), f)
		must(t, err)
		if len(page.Runs) != 2 || page.Runs[0].Context != "c1" {
			t.Errorf("%+v: %+v", f, page.Runs)
		}
	}
}
