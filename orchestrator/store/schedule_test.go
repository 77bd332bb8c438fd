package store

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func aSchedule(t testing.TB, s *Store, name string) Schedule {
	t.Helper()
	made, err := s.Schedules.Put(t.Context(), Schedule{
		Name: name, Unit: "hello", Spec: []byte(`{"cron":"@daily"}`), Input: []byte(`{"in":1}`), Files: "f1",
		Until: epoch, CreatedAt: epoch, ChangedAt: epoch, Private: []byte(`{"p":1}`),
	})
	must(t, err)
	return made
}

func planned(c Schedule, n int, outcome string) Occurrence {
	at := epoch.Add(time.Duration(n) * time.Hour)
	return Occurrence{Schedule: c.Seq, Planned: at, Fired: at, LateMS: 3, Outcome: outcome}
}

func history(t testing.TB, s *Store, c Schedule) (outcomes []string) {
	t.Helper()
	all, err := s.Occurrences.List(t.Context(), c.Seq, 0, 0)
	must(t, err)
	for _, o := range all {
		outcomes = append(outcomes, o.Outcome)
	}
	return outcomes
}

func TestAScheduleIsReplacedByItsName(t *testing.T) {
	s := open(t)
	made := aSchedule(t, s, "nightly")
	_, err := s.Occurrences.Add(t.Context(), made.Seq, epoch.Add(time.Hour), planned(made, 1, "missed"))
	must(t, err)
	changed := made
	changed.Spec, changed.Input, changed.CreatedAt, changed.ChangedAt, changed.Until = []byte(`{}`), nil, time.Time{}, epoch.Add(time.Hour), epoch.Add(2*time.Hour)
	got, err := s.Schedules.Put(t.Context(), changed)
	must(t, err)
	changed.CreatedAt, changed.Fired = epoch, 1
	if diff := cmp.Diff(changed, got); diff != "" {
		t.Error(diff)
	}
	read, err := s.Schedules.Get(t.Context(), "nightly")
	must(t, err)
	if diff := cmp.Diff(got, read); diff != "" {
		t.Error(diff)
	}
	must(t, s.Schedules.Delete(t.Context(), "nightly"))
	wantKind(t, s.Schedules.Delete(t.Context(), "nightly"), fault.NotFound)
	if left := history(t, s, made); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
	_, err = s.Occurrences.Add(t.Context(), made.Seq, epoch, planned(made, 2, "missed"))
	wantKind(t, err, fault.NotFound)
}

func TestAnOccurrenceIsStoredWithItsRunOnce(t *testing.T) {
	s := open(t)
	made := aSchedule(t, s, "nightly")
	first := planned(made, 1, "started")
	insert := func(o Occurrence) (Run, error) {
		r := aRun(1)
		o.Run = r.ID
		r.Schedule, r.With = "nightly", []WithRun{o}
		return r, s.Runs.Insert(t.Context(), r, Key{})
	}
	run, err := insert(first)
	must(t, err)
	second, err := insert(first)
	var happened *Happened
	if !errors.As(err, &happened) {
		t.Fatalf("a second run of it: %v", err)
	}
	if _, err := s.Runs.Get(t.Context(), second.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the second run: %v", err)
	}
	page, err := s.Runs.List(t.Context(), Filter{Schedule: "nightly"})
	must(t, err)
	if len(page.Runs) != 1 || page.Runs[0].ID != run.ID || page.Runs[0].Schedule != "nightly" {
		t.Errorf("its runs: %+v", page.Runs)
	}
	read, err := s.Schedules.Get(t.Context(), "nightly")
	must(t, err)
	if read.Fired != 1 || !read.Until.Equal(first.Planned) {
		t.Errorf("it has had %d, and was looked at until %v", read.Fired, read.Until)
	}
	by := planned(made, 7, "started")
	by.Manual = true
	_, err = insert(by)
	must(t, err)
	if read, _ = s.Schedules.Get(t.Context(), "nightly"); read.Fired != 1 || !read.Until.Equal(first.Planned) {
		t.Errorf("after one by hand it has had %d, and was looked at until %v", read.Fired, read.Until)
	}
}

func TestAnOccurrenceThatWaitsEndsOnce(t *testing.T) {
	s := open(t)
	made := aSchedule(t, s, "nightly")
	_, err := s.Occurrences.Add(t.Context(), made.Seq, epoch.Add(2*time.Hour), planned(made, 1, "waiting"), planned(made, 2, "waiting"))
	must(t, err)
	waiting, err := s.Occurrences.Waiting(t.Context(), 0)
	must(t, err)
	if len(waiting) != 2 || !waiting[0].Planned.Equal(epoch.Add(time.Hour)) {
		t.Fatalf("waiting: %+v", waiting)
	}
	r, first := aRun(1), waiting[0]
	first.Outcome, first.Run = "started", r.ID
	r.With = []WithRun{first}
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	wantKind(t, s.Occurrences.Save(t.Context(), first), fault.Conflict)
	must(t, s.Schedules.Pause(t.Context(), "nightly", true, epoch.Add(time.Minute), Occurrence{Outcome: "cancelled", Reason: "paused"}))
	if diff := cmp.Diff([]string{"cancelled", "started"}, history(t, s, made)); diff != "" {
		t.Error(diff)
	}
	if read, _ := s.Schedules.Get(t.Context(), "nightly"); !read.Paused || read.Fired != 2 || !read.Until.Equal(epoch.Add(time.Minute)) {
		t.Errorf("%+v", read)
	}
	wantKind(t, s.Schedules.Pause(t.Context(), "other", true, epoch, Occurrence{}), fault.NotFound)
}

func TestAThousandOccurrencesAreKept(t *testing.T) {
	s := open(t)
	made, other := aSchedule(t, s, "nightly"), aSchedule(t, s, "other")
	_, err := s.Occurrences.Add(t.Context(), other.Seq, epoch, planned(other, 0, "missed"))
	must(t, err)
	all := []Occurrence{planned(made, 0, "waiting")}
	for n := range maxOccurrences + 5 {
		all = append(all, planned(made, n+1, "missed"))
	}
	added, err := s.Occurrences.Add(t.Context(), made.Seq, epoch.Add(time.Hour), all...)
	must(t, err)
	again, err := s.Occurrences.Add(t.Context(), made.Seq, epoch.Add(time.Hour), all[100:]...)
	must(t, err)
	if got := history(t, s, made); added != len(all) || again != 0 || len(got) != maxOccurrences {
		t.Errorf("%d and %d were added, %d are kept", added, again, len(got))
	}
	if waiting, err := s.Occurrences.Waiting(t.Context(), 0); err != nil || len(waiting) != 1 {
		t.Errorf("what waits is gone: %+v, %v", waiting, err)
	}
	page, err := s.Occurrences.List(t.Context(), made.Seq, 0, 10)
	must(t, err)
	if page, err = s.Occurrences.List(t.Context(), made.Seq, s.Occurrences.Behind(page[9]), 10); err != nil || len(page) != 10 || !page[0].Planned.Equal(all[len(all)-11].Planned) {
		t.Errorf("the next page: %+v, %v", page, err)
	}
	last, err := s.Occurrences.Last(t.Context(), []int64{made.Seq, other.Seq, 99})
	must(t, err)
	if len(last) != 2 || !last[made.Seq].Planned.Equal(all[len(all)-1].Planned) {
		t.Errorf("the last ones: %+v", last)
	}
	if got, err := s.Schedules.List(t.Context(), Owned{}, 0, 1); err != nil || len(got) != 1 || got[0].Name != "other" || got[0].Input != nil {
		t.Errorf("the first page: %+v, %v", got, err)
	}
	if got, err := s.Schedules.List(t.Context(), Owned{}, s.Schedules.Behind(other), 1); err != nil || len(got) != 1 || got[0].Name != "nightly" {
		t.Errorf("the next page: %+v, %v", got, err)
	}
}
