package records

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

func openStore(t *testing.T, path string) *store.Store {
	t.Helper()
	st, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "aod.db"))
}

// row is a run that ada made, and that is its own root.
func row(id string, state api.State) store.Run {
	return store.Run{
		ID: id, Unit: "u", Kind: "capsule", Root: id, State: string(state), MadeBy: "ada", CreatedAt: time.Unix(1, 0),
	}
}

func insertRun(t *testing.T, st *store.Store, r store.Run) {
	t.Helper()
	if err := st.Runs.Insert(trusted.Context(t), r, store.Key{}); err != nil {
		t.Fatal(err)
	}
}

// told follows until something was told that is the last, or a number of things was.
func told(ctx context.Context, t *testing.T, n *News, f api.NewsFilter, after int64, most int) (all []api.News) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, testkit.Patience)
	defer cancel()
	if after > 0 {
		after = n.feed.Sealed(after)
	}
	for one, err := range n.Follow(ctx, f, after) {
		if err != nil {
			t.Fatal(err, all)
		}
		if one.Seq, err = n.feed.Unsealed(one.Seq); err != nil {
			t.Fatal(err)
		}
		if all = append(all, one); len(all) == most {
			return all
		}
	}
	return all
}

// names are what was told, in short.
func names(all []api.News) (short []string) {
	for _, one := range all {
		short = append(short, string(one.Noun)+" "+one.ID+" "+one.State)
	}
	return short
}

// TestOfAThousandRunsEveryLastStateIsToldOverARestart has many writers, a follower that comes and goes, and a store that
// is closed amid all that and opened again.
func TestOfAThousandRunsEveryLastStateIsToldOverARestart(t *testing.T) {
	t.Parallel()
	const runs, writers = 1000, 50
	path := filepath.Join(t.TempDir(), "aod.db")
	st := openStore(t, path)
	f := follower{last: map[string]string{}, seen: map[int64]bool{}}
	write := func(st *store.Store, from, to int) {
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := w; i < runs; i += writers {
					id := fmt.Sprint("r", i)
					if from == 0 {
						insertRun(t, st, row(id, api.Idle))
					}
					for _, state := range []api.State{api.Starting, api.Running, api.Completed}[from:to] {
						if err := st.Runs.Save(trusted.Context(t), row(id, state)); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		all.Wait()
	}
	following := f.begin(t, NewNews(st.Feed, everyUnit, nobody))
	write(st, 0, 1)
	if err := st.Close(); err != nil { // what the follower hasn't read by now, the next process tells
		t.Fatal(err)
	}
	<-following
	st = openStore(t, path)
	following = f.begin(t, NewNews(st.Feed, everyUnit, nobody))
	write(st, 1, 3)
	testkit.Eventually(t, "all is told", func() bool { return f.completed.Load() == runs })
	f.stop()
	<-following
	for id, state := range f.last {
		if state != string(api.Completed) {
			t.Errorf("the last that was told of %s is %s", id, state)
		}
	}
	if len(f.last) != runs || f.twice > 0 {
		t.Errorf("%d runs were told of, %d numbers twice", len(f.last), f.twice)
	}
}

// follower has what it was told, over as many connections as it takes.
type follower struct {
	at        int64
	last      map[string]string
	seen      map[int64]bool
	twice     int
	completed atomic.Int64
	stop      func()
}

// begin follows from where it was, with a new connection after some hundred changes, until it is stopped or the store is
// closed.
func (f *follower) begin(t *testing.T, n *News) (ended chan struct{}) {
	ctx, stop := context.WithCancel(trusted.Context(t))
	t.Cleanup(stop)
	f.stop, ended = stop, make(chan struct{})
	go func() {
		defer close(ended)
		for again := true; again; {
			again = f.connection(ctx, n)
		}
	}()
	return ended
}

func (f *follower) connection(ctx context.Context, n *News) (again bool) {
	left := 300
	for one, err := range n.Follow(ctx, api.NewsFilter{}, f.at) {
		if err != nil {
			return false
		}
		if f.at = one.Seq; f.seen[one.Seq] {
			f.twice++
		}
		f.seen[one.Seq], f.last[one.ID] = true, one.State
		if one.State == string(api.Completed) {
			f.completed.Add(1)
		}
		if left--; left == 0 {
			return true
		}
	}
	return false
}

// nobody is an approver.
func nobody(context.Context, string) bool { return false }

func TestNewsAreThoseThatAreWanted(t *testing.T) {
	t.Parallel()
	st, ctx := newStore(t), trusted.Context(t)
	n := NewNews(st.Feed, everyUnit, nobody)
	called, others := row("called", api.Running), row("others", api.Running)
	called.Root, called.Parent, others.MadeBy = "root", "root", "bob"
	insertRun(t, st, row("root", api.Running))
	insertRun(t, st, called)
	insertRun(t, st, others)
	if _, err := st.Questions.Open(ctx, store.Question{ID: "q", Run: "called", Answers: []byte("[]")}); err != nil {
		t.Fatal(err)
	}
	if err := st.Sessions.Insert(ctx, store.Session{ID: "s", Unit: "u", MadeBy: "bob"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Feed.SetUnits(ctx, map[string]store.UnitMark{"u": {Mark: "v1"}}); err != nil {
		t.Fatal(err)
	}
	const root, child, other, question, session, unit = "run root running", "run called running", "run others running", "question q open", "session s open", "unit u "
	for name, c := range map[string]struct {
		client string // of a token that sees its own alone; "": one that sees all
		filter api.NewsFilter
		want   []string
	}{
		"all":              {"", api.NewsFilter{}, []string{root, child, other, question, session, unit}},
		"runs":             {"", api.NewsFilter{Nouns: []api.NewsNoun{api.NewsRun}}, []string{root, child, other}},
		"two nouns":        {"", api.NewsFilter{Nouns: []api.NewsNoun{api.NewsUnit, api.NewsSession}}, []string{session, unit}},
		"a tree":           {"", api.NewsFilter{Root: "root"}, []string{root, child, question}},
		"roots":            {"", api.NewsFilter{Roots: true}, []string{root, other, question, session, unit}},
		"its own":          {"ada", api.NewsFilter{}, []string{root, child, question, unit}},
		"its own alone":    {"bob", api.NewsFilter{}, []string{other, session, unit}},
		"nothing of one's": {"eve", api.NewsFilter{}, []string{unit}},
	} {
		rows, whole, err := n.after(ctx, 0, st.Feed.Changed())
		if !whole || err != nil {
			t.Fatal(err)
		}
		seer := ctx
		if c.client != "" {
			seer = access.WithGrant(ctx, access.Grant{Name: c.client, Scopes: []access.Scope{access.Run}})
		}
		var got []api.News
		passed := teller{seen: n.selection(seer, c.filter), hand: func(one api.News) bool { got = append(got, one); return true }}
		passed.tell(rows)
		if diff := cmp.Diff(c.want, names(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	unseen := n.selection(access.WithGrant(ctx, access.Grant{}), api.NewsFilter{})
	if _, seen := unseen(store.FeedRow{Noun: "unit"}); seen {
		t.Error("a client without a token is told of units")
	}
	n.names = func(ctx context.Context, question string) bool {
		return access.OwnerOf(ctx).By == "eve" && question == "q"
	}
	eve := access.WithGrant(ctx, access.Grant{Name: "eve", Scopes: []access.Scope{access.Run}})
	for _, f := range []struct {
		filter api.NewsFilter
		want   []api.News
	}{
		{api.NewsFilter{}, []api.News{{Seq: 4, Noun: api.NewsQuestion, ID: "q", Unit: "u", Run: "called", State: "open"}}},
		{api.NewsFilter{Root: "root"}, nil},
		{api.NewsFilter{Nouns: []api.NewsNoun{api.NewsRun}}, nil},
	} {
		rows, _, err := n.after(ctx, 0, st.Feed.Changed())
		if err != nil {
			t.Fatal(err)
		}
		var got []api.News
		(&teller{seen: n.selection(eve, f.filter), hand: func(one api.News) bool {
			if one.Noun != api.NewsUnit {
				got = append(got, one)
			}
			return true
		}}).tell(rows)
		if diff := cmp.Diff(f.want, got); diff != "" {
			t.Errorf("an approver of another team, %+v: %s", f.filter, diff)
		}
	}
	got := told(ctx, t, n, api.NewsFilter{Root: "root"}, 0, 3)
	want := []api.News{
		{Seq: 1, Noun: api.NewsRun, ID: "root", Unit: "u", Root: "root", State: "running"},
		{Seq: 2, Noun: api.NewsRun, ID: "called", Unit: "u", Root: "root", Parent: "root", State: "running"},
		{Seq: 4, Noun: api.NewsQuestion, ID: "q", Unit: "u", Root: "root", Run: "called", State: "open"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhoFollowsFromNowOnIsToldWhereThatIs(t *testing.T) {
	t.Parallel()
	st := newStore(t)
	n := NewNews(st.Feed, everyUnit, nobody)
	if got := told(trusted.Context(t), t, n, api.NewsFilter{}, api.FromNow, 1); got[0].Noun != api.NewsCursor || got[0].Seq != 0 {
		t.Errorf("of nothing it is told %+v", got)
	}
	insertRun(t, st, row("before", api.Idle))
	sealed, err := n.Cursor(trusted.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	cursor, err := n.feed.Unsealed(sealed)
	if err != nil {
		t.Fatal(err)
	}
	insertRun(t, st, row("between", api.Idle))
	if got := names(told(trusted.Context(t), t, n, api.NewsFilter{}, cursor, 1)); got[0] != "run between idle" {
		t.Errorf("between the cursor and the stream there is %q", got)
	}
	var got []api.News
	for one, err := range n.Follow(trusted.Context(t), api.NewsFilter{}, api.FromNow) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, one); len(got) == 2 {
			break
		}
		if !n.IsFollowed() {
			t.Error("nobody follows")
		}
		insertRun(t, st, row("after", api.Idle))
	}
	if diff := cmp.Diff([]string{"cursor  ", "run after idle"}, names(got)); diff != "" || got[0].Seq != n.feed.Sealed(cursor+1) || n.IsFollowed() {
		t.Errorf("%+v %s", got, diff)
	}
}

func TestWhoMissedTooMuchIsToldToBeginAnew(t *testing.T) {
	t.Parallel()
	st := newStore(t)
	n := NewNews(st.Feed, everyUnit, nobody)
	insertRun(t, st, row("a", api.Idle))
	for _, after := range []int64{2, 1 << 40} { // of another store, or of this one before it was restored
		if got := told(trusted.Context(t), t, n, api.NewsFilter{}, after, 1); got[0] != (api.News{Seq: 1, Noun: api.NewsReset}) {
			t.Errorf("after %d: %+v", after, got)
		}
	}
	n.list = func(ctx context.Context, after int64, limit int) ([]store.FeedRow, bool, error) {
		rows, _, err := st.Feed.List(ctx, after, limit)
		return rows, after > 0, err
	}
	insertRun(t, st, row("b", api.Idle))
	if got := told(trusted.Context(t), t, n, api.NewsFilter{}, 0, 1); got[0] != (api.News{Seq: 2, Noun: api.NewsReset}) {
		t.Errorf("after a hole: %+v", got)
	}
}

func TestWhoWantsLittleIsToldWhereOthersAre(t *testing.T) {
	t.Parallel()
	n := NewNews(newStore(t).Feed, everyUnit, nobody)
	var rows []store.FeedRow
	for i := range int64(2*passedOver + 1) {
		rows = append(rows, store.FeedRow{Seq: i + 1, Noun: "unit"})
	}
	n.list = func(_ context.Context, after int64, _ int) ([]store.FeedRow, bool, error) {
		return rows[after:], true, nil
	}
	got := told(trusted.Context(t), t, n, api.NewsFilter{Nouns: []api.NewsNoun{api.NewsRun}}, 0, 2)
	if diff := cmp.Diff([]api.News{{Seq: passedOver, Noun: api.NewsCursor}, {Seq: 2 * passedOver, Noun: api.NewsCursor}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAllWhoFollowShareWhatIsRead(t *testing.T) {
	t.Parallel()
	const followers, changes = 200, 50
	st := newStore(t)
	n := NewNews(st.Feed, everyUnit, nobody)
	var reads atomic.Int64
	n.list = func(ctx context.Context, after int64, limit int) ([]store.FeedRow, bool, error) {
		reads.Add(1)
		return st.Feed.List(ctx, after, limit)
	}
	var all, ready, have sync.WaitGroup
	ready.Add(followers)
	have.Add(followers)
	for range followers {
		all.Go(func() {
			for one, err := range n.Follow(trusted.Context(t), api.NewsFilter{}, api.FromNow) {
				switch {
				case err != nil:
					t.Error(err)
					return
				case one.Noun == api.NewsCursor:
					ready.Done()
				case one.ID == "last":
					return
				default:
					have.Done()
				}
			}
		})
	}
	ready.Wait()
	before := reads.Load()
	for i := range changes {
		insertRun(t, st, row(fmt.Sprint("r", i), api.Idle))
		have.Wait()
		have.Add(followers)
	}
	have.Add(-followers)
	insertRun(t, st, row("last", api.Idle))
	all.Wait()
	if more := reads.Load() - before; more > 2*changes {
		t.Errorf("%d followers read %d times for %d changes", followers, more, changes)
	}
}

func TestFollowingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	n, why := NewNews(newStore(t).Feed, everyUnit, nobody), errors.New("enough")
	ctx, cancel := context.WithCancelCause(trusted.Context(t))
	defer cancel(nil)
	for _, err := range n.Follow(ctx, api.NewsFilter{}, api.FromNow) {
		if err != nil && !errors.Is(err, why) {
			t.Error(err)
		}
		cancel(why)
	}
}

// everyUnit shows units to all but those who needed no token.
func everyUnit(ctx context.Context, _, _ string) bool { return !access.IsAnonymous(ctx) }
