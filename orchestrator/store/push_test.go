package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

// aPush is a receiver of a run's events.
func aPush(run, id string) Push {
	return Push{Run: run, ID: id, URL: "https://" + id + ".example/in", Host: id + ".example", Token: "t", Scheme: "Bearer", Credentials: "c", CreatedAt: epoch}
}

func put(t *testing.T, s *Store, p Push) Push {
	t.Helper()
	stored, err := s.Pushes.Put(t.Context(), p, "made")
	must(t, err)
	return stored
}

// told returns the numbers of the events that a push has to tell of, in their order, and tells of
// all of them.
func told(t *testing.T, s *Store, push int64) (seqs []int64) {
	t.Helper()
	for {
		d, err := s.Deliveries.Next(t.Context(), push)
		if fault.Is(err, fault.NotFound) {
			return seqs
		}
		must(t, err)
		seqs = append(seqs, d.Event.Seq)
		must(t, s.Deliveries.Note(t.Context(), Try{Push: push, Event: d.Event.Seq, At: epoch, Status: 200, Delivered: true}))
	}
}

func TestDeliveriesAreStoredWithTheirEvents(t *testing.T) {
	s, r, other := open(t), aRun(1), aRun(2)
	must(t, s.Runs.Insert(t.Context(), r, Key{}, event("state")))
	must(t, s.Runs.Insert(t.Context(), other, Key{}, event("state")))
	p := put(t, s, aPush(r.ID, "a"))
	must(t, s.Events.Append(t.Context(), r.ID, event("message"), event("progress"), event("artifact")))
	second := put(t, s, aPush(r.ID, "b"))
	must(t, s.Events.Append(t.Context(), other.ID, event("message")))
	_, err := s.Questions.Open(t.Context(), Question{ID: newID(), Run: r.ID, Address: "x", Text: "?", Answers: []byte("[]"), AskedAt: epoch}, event("question"))
	must(t, err)
	must(t, s.Runs.Save(t.Context(), ended(r), event("state"), event("warning"), event("end")))
	select {
	case <-s.Deliveries.News():
	default:
		t.Error("nobody hears of the deliveries")
	}
	for _, c := range []struct {
		owned Owned
		want  int64
	}{{Owned{}, 8}, {Owned{Teams: []string{"default"}}, 8}, {Owned{Teams: []string{"a"}}, 0}} {
		if n, err := s.Pushes.Backlog(t.Context(), c.owned); err != nil || n != c.want {
			t.Errorf("%d wait of %v, %v", n, c.owned, err)
		}
	}
	if diff := cmp.Diff([]int64{2, 4, 5, 6, 8}, told(t, s, p.Seq)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{5, 6, 8}, told(t, s, second.Seq)); diff != "" {
		t.Error(diff)
	}
	stored, err := s.Pushes.Get(t.Context(), r.ID, "a")
	must(t, err)
	want := p
	want.Delivered, want.TriedAt, want.Status = 5, epoch, 200
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Error(diff)
	}
	if n, err := s.Pushes.Backlog(t.Context(), Owned{}); err != nil || n != 0 {
		t.Errorf("%d wait, %v", n, err)
	}
}

func TestAPushOfANewRunHearsItsFirstEvent(t *testing.T) {
	s, r := open(t), aRun(1)
	r.With = []WithRun{aPush(r.ID, "a"), aPush(r.ID, "b")}
	must(t, s.Runs.Insert(t.Context(), r, Key{}, event("state")))
	all, err := s.Pushes.List(t.Context(), r.ID)
	must(t, err)
	if len(all) != 2 || all[0].Waiting != 1 || all[1].ID != "b" {
		t.Errorf("%+v", all)
	}
	many := aRun(2)
	for i := range MaxPushes + 1 {
		many.With = append(many.With, aPush(many.ID, fmt.Sprint("p", i)))
	}
	wantKind(t, s.Runs.Insert(t.Context(), many, Key{}, event("state")), fault.TooLarge)
	_, err = s.Runs.Get(t.Context(), many.ID)
	wantKind(t, err, fault.NotFound)
}

func TestAPushIsPutAgain(t *testing.T) {
	s, r := open(t), aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	first := put(t, s, aPush(r.ID, ""))
	if again := put(t, s, aPush(r.ID, "")); first.ID != "made" || again.Seq != first.Seq {
		t.Errorf("%+v, then %+v", first, again)
	}
	must(t, s.Events.Append(t.Context(), r.ID, event("state")))
	must(t, s.Deliveries.Note(t.Context(), Try{Push: first.Seq, Event: 1, At: epoch, Next: epoch.Add(time.Hour)}))
	moved := aPush(r.ID, "made")
	moved.URL, moved.Host, moved.CreatedAt = "https://new.example/", "new.example", epoch.Add(time.Minute)
	got := put(t, s, moved)
	if got.Seq != first.Seq || got.URL != moved.URL || got.Waiting != 1 || !got.NextAt.Equal(moved.CreatedAt) || !got.CreatedAt.Equal(epoch) {
		t.Errorf("%+v", got)
	}
	if d, err := s.Deliveries.Next(t.Context(), first.Seq); err != nil || d.Tries != 0 || d.Push.URL != moved.URL {
		t.Errorf("%+v, %v", d, err)
	}
	must(t, s.Deliveries.Note(t.Context(), Try{Push: first.Seq, Event: 1, At: epoch, Reason: "refused"}))
	if p, err := s.Pushes.Get(t.Context(), r.ID, "made"); err != nil || p.Reason != "refused" || p.Lost != 1 || p.Waiting != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	must(t, s.Events.Append(t.Context(), r.ID, event("state")))
	put(t, s, moved)
	must(t, s.Events.Append(t.Context(), r.ID, event("state")))
	if diff := cmp.Diff([]int64{3}, told(t, s, first.Seq)); diff != "" {
		t.Errorf("while it was given up it heard nothing:\n%s", diff)
	}
	for i := range MaxPushes - 1 {
		put(t, s, aPush(r.ID, fmt.Sprint("p", i)))
	}
	_, err := s.Pushes.Put(t.Context(), aPush(r.ID, "more"), "")
	wantKind(t, err, fault.TooLarge)
	_, err = s.Pushes.Put(t.Context(), aPush(newID(), "a"), "")
	wantKind(t, err, fault.NotFound)
}

func TestAPushWithTooManyThatWaitIsGivenUpWhole(t *testing.T) {
	s, r := open(t), aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	slow, quick := put(t, s, aPush(r.ID, "slow")), put(t, s, aPush(r.ID, "quick"))
	must(t, s.Events.Append(t.Context(), r.ID, slices.Repeat([]Event{event("artifact")}, maxPushWaiting)...))
	told(t, s, quick.Seq)
	must(t, s.Events.Append(t.Context(), r.ID, event("end")))
	got, err := s.Pushes.Get(t.Context(), r.ID, "slow")
	must(t, err)
	if got.Reason != "backlog" || got.GivenUpAt.IsZero() || got.Waiting != 0 || got.Lost != maxPushWaiting+1 {
		t.Errorf("%+v", got)
	}
	if _, err := s.Deliveries.Next(t.Context(), slow.Seq); !fault.Is(err, fault.NotFound) {
		t.Errorf("it has something to tell: %v", err)
	}
	if diff := cmp.Diff([]int64{maxPushWaiting + 1}, told(t, s, quick.Seq)); diff != "" {
		t.Errorf("the other one:\n%s", diff)
	}
}

func TestAllPushesHaveABoundOfWhatWaits(t *testing.T) {
	s, r, other := open(t), aRun(1), aRun(2)
	for _, run := range []Run{r, other} {
		must(t, s.Runs.Insert(t.Context(), run, Key{}))
		put(t, s, aPush(run.ID, "a"))
	}
	must(t, s.Events.Append(t.Context(), other.ID, event("state")))
	must(t, s.core.write(t.Context(), switchTotals(maxPushBacklog)))
	must(t, s.Events.Append(t.Context(), r.ID, event("state")))
	if p, err := s.Pushes.Get(t.Context(), r.ID, "a"); err != nil || p.Reason != "backlog" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := s.Pushes.Get(t.Context(), other.ID, "a"); err != nil || p.Waiting != 1 {
		t.Errorf("another run's: %+v, %v", p, err)
	}
}

func TestPushesGoWithTheirRun(t *testing.T) {
	s, r := open(t), ended(aRun(1))
	r.With = []WithRun{aPush(r.ID, "a"), aPush(r.ID, "b")}
	must(t, s.Runs.Insert(t.Context(), r, Key{}, event("state"), event("end")))
	must(t, s.Pushes.Delete(t.Context(), r.ID, "b"))
	wantKind(t, s.Pushes.Delete(t.Context(), r.ID, "b"), fault.NotFound)
	if n, err := s.Pushes.Backlog(t.Context(), Owned{}); err != nil || n != 2 {
		t.Errorf("%d wait, %v", n, err)
	}
	all, err := s.Pushes.List(t.Context(), r.ID)
	must(t, err)
	must(t, s.Runs.Delete(t.Context(), r.ID))
	if n, err := s.Pushes.Backlog(t.Context(), Owned{}); err != nil || n != 0 {
		t.Errorf("%d wait, %v", n, err)
	}
	_, err = s.Pushes.Get(t.Context(), r.ID, "a")
	wantKind(t, err, fault.NotFound)
	again := aRun(2)
	must(t, s.Runs.Insert(t.Context(), again, Key{}))
	if p := put(t, s, aPush(again.ID, "a")); p.Seq <= all[0].Seq {
		t.Errorf("the number %d was given before", p.Seq)
	}
	must(t, s.Deliveries.Note(t.Context(), Try{Push: all[0].Seq, Event: 1, At: epoch, Delivered: true})) // a late word
}

func TestDuePushes(t *testing.T) {
	s, r := open(t), aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	var all []Push
	for _, id := range []string{"a", "b", "c", "d"} {
		all = append(all, put(t, s, aPush(r.ID, id)))
	}
	must(t, s.Events.Append(t.Context(), r.ID, event("state")))
	delay := func(n int, until time.Time) {
		t.Helper()
		must(t, s.Deliveries.Note(t.Context(), Try{Push: all[n].Seq, Event: 1, At: epoch, Next: until}))
	}
	delay(1, epoch.Add(time.Minute))
	delay(2, epoch.Add(10*time.Hour)) // by another clock
	must(t, s.Deliveries.Note(t.Context(), Try{Push: all[3].Seq, Event: 1, At: epoch, Nothing: true}))
	check := func(at time.Time, besides Besides, limit int, next time.Time, want ...int) {
		t.Helper()
		due, n, err := s.Deliveries.Due(t.Context(), at, besides, limit)
		must(t, err)
		var wanted []DuePush
		for _, i := range want {
			wanted = append(wanted, DuePush{all[i].Seq, all[i].Host})
		}
		if diff := cmp.Diff(wanted, due); diff != "" || !n.Equal(next) {
			t.Errorf("next at %v, want %v\n%s", n, next, diff)
		}
	}
	soon := epoch.Add(time.Minute)
	check(epoch, Besides{}, 0, soon, 0, 2)
	check(epoch, Besides{}, 1, soon, 0)
	check(soon, Besides{}, 0, epoch.Add(10*time.Hour), 0, 1, 2)
	check(epoch, Besides{Pushes: []int64{all[2].Seq}}, 0, soon, 0)
	check(epoch, Besides{Hosts: []string{"a.example"}}, 0, soon, 2)
	if p, err := s.Pushes.Get(t.Context(), r.ID, "d"); err != nil || p.Waiting+p.Delivered+p.Lost != 0 {
		t.Errorf("what is told of nothing: %+v, %v", p, err)
	}
}

// switchTotals writes a backlog as if others had it.
func switchTotals(backlog int) change {
	return func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, "UPDATE totals SET push_backlog = ?", backlog)
		return err
	}
}
