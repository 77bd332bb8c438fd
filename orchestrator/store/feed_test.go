package store

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agent-on-demand/aod/internal/pause"
)

// fed returns what the feed has after a number, which grows, and the newest number.
func fed(t *testing.T, s *Store, after int64) (rows []FeedRow, newest int64) {
	t.Helper()
	rows, whole, err := s.Feed.List(t.Context(), after, 0)
	must(t, err)
	if !whole {
		t.Fatalf("after %d there is a hole", after)
	}
	for _, row := range rows {
		if row.Seq <= after {
			t.Fatalf("%d comes after %d", row.Seq, after)
		}
		after = row.Seq
	}
	return rows, after
}

// TestTheFeedHasTheLastChangeOfEachThing makes one change after the other, and looks what each adds.
func TestTheFeedHasTheLastChangeOfEachThing(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	r := aRun(1)
	r.ID, r.Root, r.Parent, r.MadeBy, r.Session, r.Turn = "r", "top", "up", "ada", "s", 1
	over := ended(r)
	q := Question{ID: "q", Run: "r", Address: "ask", Answers: []byte(`["ok"]`), AskedAt: epoch}
	q2 := q
	q2.ID, q2.Address = "q2", "then"
	session := Session{ID: "s", Unit: "hello", Team: "default", MadeBy: "ada", CreatedAt: epoch, UsedAt: epoch}
	closed := session
	closed.Closed = true
	aboutRun := func(state, outcome string) FeedRow {
		return FeedRow{Noun: "run", ID: "r", Unit: "hello", Parent: "up", Root: "top", State: state, Outcome: outcome, Team: "default", MadeBy: "ada"}
	}
	aboutQuestion := func(id, state string) FeedRow {
		return FeedRow{Noun: "question", ID: id, Unit: "hello", Parent: "r", Root: "top", State: state, Team: "default", MadeBy: "ada"}
	}
	aboutSession := func(state string) FeedRow {
		return FeedRow{Noun: "session", ID: "s", Unit: "hello", State: state, Team: "default", MadeBy: "ada"}
	}
	aboutUnit := func(id, mark string) FeedRow { return FeedRow{Noun: "unit", ID: id, State: mark} }
	var newest int64
	for _, c := range []struct {
		name   string
		change func() error
		want   []FeedRow
	}{
		{"a new session", func() error { return s.Sessions.Insert(ctx, session) }, []FeedRow{aboutSession("open")}},
		{
			"a new run, which is a turn", func() error { return s.Runs.Insert(ctx, r, Key{Value: "k"}) },
			[]FeedRow{aboutRun("running", ""), aboutSession("open")},
		},
		{"a save without a change", func() error { r.DiskBytes++; return s.Runs.Save(ctx, r, event("progress")) }, nil},
		{"an event", func() error { return s.Events.Append(ctx, "r", event("progress")) }, nil},
		{"a question", func() error { _, err := s.Questions.Open(ctx, q); return err }, []FeedRow{aboutQuestion("q", "open")}},
		{"the question again", func() error { _, err := s.Questions.Open(ctx, q); return err }, nil},
		{"an answer", func() error {
			return s.Questions.Answer(ctx, Key{Value: "a"}, "q", []byte(`{}`), "bob", epoch)
		}, []FeedRow{aboutQuestion("q", "answered")}},
		{"a question that closes", func() error {
			_, err := s.Questions.Open(ctx, q2)
			must(t, err)
			_, err = s.Questions.Close(ctx, "q2", epoch)
			return err
		}, []FeedRow{aboutQuestion("q2", "closed")}},
		{"a state", func() error { r.State = "failed"; return s.Runs.Save(ctx, r, event("state")) }, []FeedRow{aboutRun("failed", "")}},
		{
			"an outcome, and the end of the session", func() error { return s.Sessions.SaveTurn(ctx, closed, over, event("end")) },
			[]FeedRow{aboutSession("closed"), aboutRun("completed", "success")},
		},
		{"a session that is used", func() error {
			closed.UsedAt = epoch.Add(time.Hour)
			return s.Sessions.Save(ctx, closed, "")
		}, nil},
		{
			"units", func() error { return s.Feed.SetUnits(ctx, map[string]UnitMark{"a": {Mark: "1"}, "b": {Mark: "1"}}) },
			[]FeedRow{aboutUnit("a", "1"), aboutUnit("b", "1")},
		},
		{"the same units", func() error { return s.Feed.SetUnits(ctx, map[string]UnitMark{"a": {Mark: "1"}, "b": {Mark: "1"}}) }, nil},
		{"another version", func() error { return s.Feed.SetUnits(ctx, map[string]UnitMark{"a": {Mark: "1"}, "b": {Mark: "2"}}) }, []FeedRow{aboutUnit("b", "2")}},
		{"a unit that is switched off", func() error { return s.Units.Disable(ctx, "b", epoch) }, []FeedRow{aboutUnit("b", "2")}},
		{"a unit that is off", func() error { return s.Units.Disable(ctx, "b", epoch) }, nil},
		{"a unit that is switched on", func() error { return s.Units.Enable(ctx, "b") }, []FeedRow{aboutUnit("b", "2")}},
		{"a switch of a unit that nobody told of", func() error { return s.Units.Enable(ctx, "c") }, []FeedRow{aboutUnit("c", "")}},
		{
			"units that are gone", func() error { return s.Feed.SetUnits(ctx, map[string]UnitMark{"a": {Mark: "1"}}) },
			[]FeedRow{aboutUnit("b", Gone), aboutUnit("c", Gone)},
		},
		{"units that were gone before", func() error { return s.Feed.SetUnits(ctx, map[string]UnitMark{"a": {Mark: "1"}}) }, nil},
		{"a unit that is there again", func() error { return s.Feed.SetUnits(ctx, map[string]UnitMark{"a": {Mark: "1"}, "b": {Mark: "1"}}) }, []FeedRow{aboutUnit("b", "1")}},
		{
			"a run that is removed, with its questions", func() error { return s.Runs.Delete(ctx, "r") },
			[]FeedRow{aboutQuestion("q", Gone), aboutQuestion("q2", Gone), aboutRun(Gone, "success")},
		},
		{
			"a session that is removed", func() error { _, err := s.Sessions.Forget(ctx, Owned{}, epoch.Add(2*time.Hour)); return err },
			[]FeedRow{aboutSession(Gone)},
		},
		{"a run that is there again", func() error { return s.Runs.Insert(ctx, over, Key{}) }, []FeedRow{aboutRun("completed", "success")}},
		{"a run that is refused", func() error {
			if err := s.Runs.Insert(ctx, Run{ID: "x", Unit: "u", CreatedAt: epoch}, Key{Value: "twice"}); err != nil {
				return err
			}
			if s.Runs.Insert(ctx, Run{ID: "y", Unit: "u", CreatedAt: epoch}, Key{Value: "twice"}) == nil {
				return fmt.Errorf("a key is taken twice")
			}
			return nil
		}, []FeedRow{{Noun: "run", ID: "x", Unit: "u", Team: "default"}}},
	} {
		must(t, c.change())
		var got []FeedRow
		got, newest = fed(t, s, newest)
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(FeedRow{}, "Seq")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	all, _ := fed(t, s, 0)
	things := map[string]bool{}
	for _, row := range all {
		things[row.Noun+row.ID] = true
	}
	if len(things) != len(all) || len(all) != 8 {
		t.Errorf("%d things have %d rows", len(things), len(all))
	}
}

func TestNumbersOfTheFeedGrowOverARestartAndAreNeverGivenTwice(t *testing.T) {
	t.Parallel()
	path, r := filepath.Join(t.TempDir(), "aod.db"), aRun(1)
	var newest int64
	for range 3 {
		s := openAt(t, path)
		for _, state := range []string{"starting", "running"} { // the newest row is replaced each time
			r.State = state
			if newest == 0 {
				must(t, s.Runs.Insert(t.Context(), r, Key{}))
			} else {
				must(t, s.Runs.Save(t.Context(), r))
			}
			rows, next := fed(t, s, newest)
			if len(rows) != 1 || rows[0].State != state {
				t.Fatalf("after %d: %+v", newest, rows)
			}
			newest = next
		}
		must(t, s.Close())
	}
}

func TestTheFeedIsBoundedAndSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := open(t)
	must(t, s.Feed.SetUnits(t.Context(), map[string]UnitMark{"old": {Mark: "1"}}))
	must(t, s.Feed.SetUnits(t.Context(), map[string]UnitMark{"old": {Mark: "1"}, "removed": {Mark: "1"}}))
	must(t, s.Feed.SetUnits(t.Context(), map[string]UnitMark{"old": {Mark: "1"}}))
	run := aRun(1)
	must(t, s.Runs.Insert(t.Context(), run, Key{}))
	must(t, s.core.change(t.Context(), "jump", func(ctx context.Context, tx *transaction) error {
		return tx.exec(ctx, "INSERT INTO feed (seq, noun, id) VALUES (?, 'run', 'far')", KeptChanges+3999)
	}))
	if rows, _, err := s.Feed.List(t.Context(), 0, 0); err != nil || len(rows) != 4 {
		t.Fatalf("%+v %v", rows, err)
	}
	must(t, s.core.change(t.Context(), "fill", func(ctx context.Context, tx *transaction) error {
		return tx.exec(ctx, `WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n LIMIT ?)
			INSERT INTO feed (seq, noun, id) SELECT i, 'run', 'old' || i FROM n`, 2*trimmedAtOnce)
	}))
	must(t, s.Runs.Insert(t.Context(), aRun(2), Key{})) // number 104,000
	must(t, s.Feed.Trim(t.Context()))
	rows, whole, err := s.Feed.List(t.Context(), 0, 0)
	must(t, err)
	var left []string
	for _, row := range rows {
		left = append(left, row.Noun)
	}
	if diff := cmp.Diff([]string{"unit", "run", "run"}, left); diff != "" || whole {
		t.Errorf("from the first on there is all: %v, %s", whole, diff)
	}
	for after, want := range map[int64]bool{3999: false, 4000: true, KeptChanges + 4000: true, KeptChanges + 4001: false} {
		if _, whole, err := s.Feed.List(t.Context(), after, 0); whole != want || err != nil {
			t.Errorf("after %d: whole is %v, %v", after, whole, err)
		}
	}
}

func TestWhoWaitsForTheFeedIsWokenByAChangeAlone(t *testing.T) {
	t.Parallel()
	s, r := open(t), aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	first := s.Feed.Changed()
	must(t, s.Events.Append(t.Context(), r.ID, event("progress"))) // the insert may have been overlooked
	<-first
	changed := s.Feed.Changed()
	for range 2 { // the look after the one is over when the next is stored
		must(t, s.Events.Append(t.Context(), r.ID, event("progress")))
	}
	if pause.Over(changed) {
		t.Error("an event is no change")
	}
	must(t, s.Runs.Save(t.Context(), ended(r)))
	<-changed
}
