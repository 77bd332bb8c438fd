package store

import (
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

// keeps is what a Filter means, said in the plainest way.
func keeps(f Filter, r Run) bool {
	return (f.Unit == "" || f.Unit == r.Unit) &&
		(f.Parent == "" || f.Parent == r.Parent) &&
		(f.Root == "" || f.Root == r.Root) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
		(!f.Roots || r.Parent == "") &&
		(f.MadeBy == "" || f.MadeBy == r.MadeBy) && owns(f.Owned, r) &&
		(!f.Unfinished || !r.Finished) && has(r.Metadata, f.Metadata) &&
		(f.Since.IsZero() || !r.CreatedAt.Before(f.Since)) &&
		(f.Until.IsZero() || r.CreatedAt.Before(f.Until))
}

func owns(o Owned, r Run) bool {
	return (len(o.Teams) == 0 || slices.Contains(o.Teams, r.Team)) && (o.By == "" || o.By == r.MadeBy)
}

func has(there, wanted map[string]string) bool {
	for key, value := range wanted {
		if there[key] != value {
			return false
		}
	}
	return true
}

// everyFilter is each combination of the filter's fields.
func everyFilter() []Filter {
	var all []Filter
	for _, unit := range []string{"", "u1"} {
		for _, parent := range []string{"", "p1"} {
			for _, root := range []string{"", "r1"} {
				for _, states := range [][]string{nil, {"failed"}, {"running", "failed", "failed", "nothing", "completed"}} {
					for _, unfinished := range []bool{false, true} {
						for _, since := range []time.Time{{}, epoch.Add(20 * time.Second)} {
							for _, until := range []time.Time{{}, epoch.Add(70 * time.Second)} {
								if !until.IsZero() {
									f := Filter{Unit: unit, Parent: parent, Root: root, States: states, Unfinished: unfinished, Since: since, Until: until}
									all = append(all, f)
									f.Roots = true
									all = append(all, f)
									f.MadeBy = "ada"
									f.Owned = []Owned{{}, {By: "ada"}, {By: "bob"}, {Teams: []string{"t"}}, {Teams: []string{"default"}}, {Teams: []string{"t", "default"}, By: "ada"}, {Teams: []string{"t", "nobody"}}}[len(all)%7]
									all = append(all, f)
									f.MadeBy = ""
									all = append(all, f)
									continue
								}
								for _, metadata := range []map[string]string{nil, {"user_id": "ada"}, {"user_id": "bob", "mode": "DEMO"}} {
									all = append(all, Filter{
										Unit: unit, Parent: parent, Root: root, States: states, Metadata: metadata,
										Unfinished: unfinished, Since: since,
									})
								}
							}
						}
					}
				}
			}
		}
	}
	return all
}

// insertMixed stores runs of every sort, some created at the same time, and returns
// them in the order of lists.
func insertMixed(t *testing.T, s *Store, n int) []Run {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var all []Run
	for range n {
		r := aRun(random.IntN(n / 2))
		r.Unit, r.Parent, r.Root = pick("u1", "u2"), pick("", "p1", "p2"), pick("r1", "r2")
		r.MadeBy = []string{"", "ada", "bob"}[len(all)%3] // not by chance: what else is picked stays as it was
		r.Team = []string{"default", "t"}[len(all)%2]
		if r.State = pick("running", "failed", "completed"); r.State != "running" {
			state := r.State
			r = ended(r)
			r.State = state
		}
		r.Metadata = map[string]string{"user_id": pick("ada", "bob"), "mode": pick("DEMO", "LIVE"), "bob": "user_id"}
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
		all = append(all, r)
	}
	slices.Reverse(all) // those of one moment: the last inserted first
	slices.SortStableFunc(all, func(a, b Run) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return all
}

func TestEveryFilterPageByPage(t *testing.T) {
	s := open(t)
	all := insertMixed(t, s, 200)
	for i, f := range everyFilter() {
		var want []Run
		for _, r := range all {
			if keeps(f, r) {
				r.Private, r.Input, r.Metadata = nil, nil, nil
				want = append(want, r)
			}
		}
		f.Limit = 1 + i%40
		if diff := cmp.Diff(want, pages(t, s, f)); diff != "" {
			t.Fatalf("%+v: %s", f, diff)
		}
	}
}

// pages collects a list and checks the size of each page.
func pages(t *testing.T, s *Store, f Filter) []Run {
	t.Helper()
	var all []Run
	for {
		p, err := s.Runs.List(t.Context(), f)
		must(t, err)
		all = append(all, p.Runs...)
		if p.Next == "" {
			return all
		}
		if len(p.Runs) != f.Limit {
			t.Fatalf("%+v: a page of %d", f, len(p.Runs))
		}
		f.Cursor = p.Next
	}
}

func TestPagesStayInPlaceWhileRunsComeAndGo(t *testing.T) {
	s := open(t)
	all := insertMixed(t, s, 60)
	first, err := s.Runs.List(t.Context(), Filter{Limit: 10})
	must(t, err)
	must(t, s.Runs.Insert(t.Context(), aRun(1000), Key{}))
	over := slices.IndexFunc(first.Runs, func(r Run) bool { return r.Finished })
	must(t, s.Runs.Delete(t.Context(), first.Runs[over].ID))
	second, err := s.Runs.List(t.Context(), Filter{Limit: 10, Cursor: first.Next})
	must(t, err)
	for i, r := range second.Runs {
		if r.ID != all[10+i].ID {
			t.Fatalf("run %d of the second page is another", i)
		}
	}
}

func TestALimitIsFiftyUnlessTold(t *testing.T) {
	s := open(t)
	insertMixed(t, s, 60)
	p, err := s.Runs.List(t.Context(), Filter{})
	must(t, err)
	if len(p.Runs) != 50 || p.Next == "" {
		t.Errorf("a page of %d, next %q", len(p.Runs), p.Next)
	}
	for _, f := range []Filter{{Limit: -1}, {Limit: 1001}, {States: make([]string, 33)}, {Metadata: tags(17)}} {
		_, err := s.Runs.List(t.Context(), f)
		wantKind(t, err, fault.Input)
	}
}

// tags is so much metadata.
func tags(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprintf("k%d", i)] = "v"
	}
	return all
}

func TestTimesBeyondWhatIsStored(t *testing.T) {
	s := open(t)
	must(t, s.Runs.Insert(t.Context(), aRun(1), Key{}))
	far, long := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC)
	for want, f := range map[int]Filter{1: {Since: long, Until: far}, 0: {Since: far, Until: long}} {
		p, err := s.Runs.List(t.Context(), f)
		must(t, err)
		if len(p.Runs) != want {
			t.Errorf("%+v found %d", f, len(p.Runs))
		}
	}
}

// plan returns how SQLite goes about a query.
func plan(t *testing.T, s *Store, text string, args ...any) string {
	t.Helper()
	steps, err := query(t.Context(), s.core.readers, func(row scanner, step *string) error {
		var id, parent, unused int
		return row.Scan(&id, &parent, &unused, step)
	}, "EXPLAIN QUERY PLAN "+text, args...)
	must(t, err)
	return strings.Join(steps, "\n")
}

// insertMany stores finished runs at once.
func insertMany(t testing.TB, s *Store, n int, fill func(i int, r *Run)) {
	t.Helper()
	db, known := s.core.writer.db, &statements{known: map[string]*sql.Stmt{}}
	for from, to := 0, 1; from < n; from, to = to, n { // what the first one asks is prepared for the others
		tx, err := db.Begin()
		must(t, err)
		for i := from; i < to; i++ {
			r := ended(aRun(i))
			fill(i, &r)
			must(t, insert(t.Context(), &transaction{Tx: tx, statements: known}, r, Key{}, nil))
		}
		must(t, tx.Commit())
		known.prepare(t.Context(), db)
	}
}

func planOf(t *testing.T, s *Store, of statement) string {
	t.Helper()
	return plan(t, s, of.text, of.args...)
}

func TestNoListWalksOrSortsTheTable(t *testing.T) {
	s := open(t)
	insertMany(t, s, 2000, func(i int, r *Run) {
		r.Root, r.Parent, r.Unit = "r1", []string{"", "p1"}[i%2], "u1"
		r.Metadata = map[string]string{"user_id": "ada", "mode": "DEMO"}
	})
	check := func(name, plan string) {
		t.Helper()
		if strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
	for _, f := range everyFilter() {
		for _, by := range f.candidates() {
			check(fmt.Sprintf("%+v by %q", f, by), planOf(t, s, f.runs(by, position{1, 1}).page(50)))
		}
	}
	check("events", plan(t, s, selectEvents, "x", 1, 1))
	check("tree", plan(t, s, selectTree, "r1", 1))
	check("oldest", plan(t, s, selectOldest+" ORDER BY finished_at, seq LIMIT ?", 1, 1, "x", 1))
	check("run", plan(t, s, selectWhole+" WHERE runs.id = ?", "x"))
}

func TestEachListIsReadByTheIndexWithTheFewestRuns(t *testing.T) {
	s := open(t)
	insertMany(t, s, 2000, func(_ int, r *Run) { r.Root, r.Unit = "r1", "u1" })
	all := Filter{Unit: "u1", States: []string{"failed", "running"}, MadeBy: "m", Since: epoch, Until: epoch.Add(time.Hour)}
	for index, choose := range map[string]func(*Filter){
		"runs_by_session":    func(f *Filter) { f.Session = "s" },
		"runs_by_schedule":   func(f *Filter) { f.Schedule = "s" },
		"runs_by_parent":     func(f *Filter) { f.Parent, f.Root = "p", "r1" },
		"runs_by_context":    func(f *Filter) { f.Context = "c" },
		"runs_by_root":       func(f *Filter) { f.Root = "r1" },
		"runs_unfinished":    func(f *Filter) { f.Unfinished = true },
		"runs_by_unit_state": func(*Filter) {},
		"runs_by_unit":       func(f *Filter) { f.States = nil },
		"runs_by_state":      func(f *Filter) { f.Unit = "" },
		"runs_by_maker":      func(f *Filter) { f.Unit, f.States, f.Roots = "", nil, true },
		"runs_by_time":       func(f *Filter) { f.Unit, f.States, f.MadeBy = "", nil, "" },
		"runs_roots":         func(f *Filter) { f.Unit, f.States, f.MadeBy, f.Roots = "", nil, "", true },
		"runs_by_team":       func(f *Filter) { *f = Filter{Owned: Owned{Teams: []string{"t"}}} },
		"runs_roots_by_team": func(f *Filter) { *f = Filter{Owned: Owned{Teams: []string{"t"}}, Roots: true} },
	} {
		f := all
		choose(&f)
		got := planOf(t, s, f.runs("", position{1, 1}).page(50))
		if !strings.Contains(got, "SEARCH runs USING INDEX "+index+" (") || strings.Contains(got, "TEMP B-TREE") {
			t.Errorf("%s:\n%s", index, got)
		}
		if f.Unfinished, f.Asking = false, f.Unfinished; f.Asking {
			if got := planOf(t, s, f.runs("", position{1, 1}).page(50)); !strings.Contains(got, index) {
				t.Errorf("asking:\n%s", got)
			}
		}
	}
}

func TestUnfinishedLooksAtNoFinishedRun(t *testing.T) {
	got := plan(t, open(t), selectUnfinished)
	if !strings.HasPrefix(got, "SCAN runs USING INDEX runs_unfinished") || strings.Contains(got, "TEMP B-TREE") {
		t.Error(got)
	}
}

func TestAListOfUnfinishedLooksAtNoFinishedRun(t *testing.T) {
	s := open(t)
	for _, f := range []Filter{{Unfinished: true}, {Unfinished: true, Unit: "u1", States: []string{"running"}, Metadata: tags(16)}} {
		if got := planOf(t, s, f.runs(f.candidates()[0], position{1, 1}).page(50)); !strings.Contains(got, "USING INDEX runs_unfinished") {
			t.Error(got)
		}
	}
}

var newest = position{math.MaxInt64, math.MaxInt64}

func TestTheIndexOfTheRarestIsChosen(t *testing.T) {
	s := open(t)
	insertMany(t, s, 1100, func(i int, r *Run) {
		r.Metadata = map[string]string{"mode": "DEMO", "user_id": fmt.Sprint(i % 3), "request_id": fmt.Sprint(i)}
		if i == 0 {
			r.Unit = "rare"
		}
	})
	for want, f := range map[string]Filter{
		"user_id":    {Metadata: map[string]string{"mode": "DEMO", "user_id": "1"}},
		"request_id": {Metadata: map[string]string{"mode": "DEMO", "user_id": "1", "request_id": "7"}, States: []string{"completed"}},
		"":           {Metadata: map[string]string{"mode": "DEMO", "user_id": "0"}, Unit: "rare"},
	} {
		by, err := f.chooseIndex(t.Context(), s.core.readers, newest)
		if err != nil || by != want {
			t.Errorf("%+v is read by %q, not %q: %v", f, by, want, err)
		}
	}
}

func TestWhatIsFewAnywayIsChosen(t *testing.T) {
	for _, f := range []Filter{{Parent: "p"}, {Root: "r"}, {Unfinished: true}, {Asking: true}} {
		f.Metadata, f.Unit = tags(2), "u"
		if candidates := f.candidates(); len(candidates) != 1 || candidates[0] != "" {
			t.Errorf("%+v is read by %q", f, candidates)
		}
	}
}

func TestALookAtAnIndexSeesNoTable(t *testing.T) {
	s := open(t)
	f := Filter{Unit: "u", States: []string{"failed", "running"}, Metadata: tags(2), Since: epoch}
	for _, by := range f.candidates() {
		if got := planOf(t, s, f.entries(by, newest, firstLook).count()); strings.Count(got, "USING COVERING INDEX") != strings.Count(got, "SEARCH") || strings.Contains(got, "B-TREE") {
			t.Errorf("by %q:\n%s", by, got)
		}
	}
}

func TestMetadataGoesWithItsRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "aod.db")
	s := openAt(t, path)
	r := ended(aRun(1))
	r.Metadata = map[string]string{"user_id": "ada"}
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	r.Metadata = nil
	must(t, s.Runs.Save(t.Context(), r)) // which leaves it alone
	ada := Filter{Metadata: map[string]string{"user_id": "ada"}}
	if found := pages(t, s, Filter{Metadata: ada.Metadata, Limit: 5}); len(found) != 1 || found[0].ID != r.ID {
		t.Fatalf("found %+v", found)
	}
	must(t, s.Runs.Delete(t.Context(), r.ID))
	var left int
	must(t, raw(t, path).QueryRow("SELECT count(*) FROM metadata").Scan(&left))
	if left != 0 {
		t.Errorf("%d rows are left", left)
	}
}
