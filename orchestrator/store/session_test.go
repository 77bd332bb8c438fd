package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func aSession(id string) Session {
	return Session{ID: id, Unit: "talker", Team: "default", Version: "v1", CreatedAt: epoch, UsedAt: epoch, Private: []byte(`{"n":0}`)}
}

func TestASessionIsKeptWithTheEventsOfItsTurn(t *testing.T) {
	s := open(t)
	must(t, s.Sessions.Insert(t.Context(), aSession("s1")))
	if err := s.Sessions.Insert(t.Context(), aSession("s1")); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second one of the id: %v", err)
	}
	turn := aRun(0)
	turn.Session, turn.Turn = "s1", 1
	must(t, s.Runs.Insert(t.Context(), turn, Key{}))
	saved := aSession("s1")
	saved.Private, saved.UsedAt = []byte(`{"n":1}`), epoch.Add(time.Minute)
	must(t, s.Sessions.Save(t.Context(), saved, turn.ID, Event{At: epoch, Type: "agent", Data: []byte(`{}`)}))
	got, err := s.Sessions.Get(t.Context(), "s1")
	must(t, err)
	saved.Seq, saved.Turns = 1, 1
	if diff := cmp.Diff(saved, got); diff != "" {
		t.Error(diff)
	}
	if told := events(t, s, turn.ID); len(told) != 1 || told[0].Type != "agent" {
		t.Errorf("events of the turn: %v", told)
	}
	page, err := s.Runs.List(t.Context(), Filter{Session: "s1"})
	must(t, err)
	if len(page.Runs) != 1 || page.Runs[0].Turn != 1 || page.Runs[0].Session != "s1" {
		t.Errorf("its turns: %+v", page.Runs)
	}
}

func TestATurnIsKeptWithItsSession(t *testing.T) {
	s := open(t)
	must(t, s.Sessions.Insert(t.Context(), aSession("s1")))
	turn := aRun(0)
	turn.Session, turn.Turn = "s1", 1
	must(t, s.Runs.Insert(t.Context(), turn, Key{}))
	turn.State, turn.Output = "completed", []byte(`{"text":"yes"}`)
	missing, unsaved := aRun(1), aSession("s1")
	unsaved.Private = []byte(`{"n":2}`)
	for name, err := range map[string]error{
		"a session that isn't there": s.Sessions.SaveTurn(t.Context(), aSession("s2"), turn, event("state")),
		"a turn that isn't there":    s.Sessions.SaveTurn(t.Context(), unsaved, missing, event("state")),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := s.Runs.Get(t.Context(), turn.ID)
	must(t, err)
	session, err := s.Sessions.Get(t.Context(), "s1")
	must(t, err)
	if got.State == turn.State || string(session.Private) != `{"n":0}` || len(events(t, s, turn.ID)) > 0 {
		t.Errorf("half of it is stored: %+v, %+v", got, session)
	}
	saved := aSession("s1")
	saved.Private = []byte(`{"n":1}`)
	must(t, s.Sessions.SaveTurn(t.Context(), saved, turn, event("agent"), event("state")))
	got, err = s.Runs.Get(t.Context(), turn.ID)
	must(t, err)
	session, err = s.Sessions.Get(t.Context(), "s1")
	must(t, err)
	if got.State != turn.State || string(got.Output) != string(turn.Output) || string(session.Private) != `{"n":1}` || len(events(t, s, turn.ID)) != 2 {
		t.Errorf("%+v, %+v", got, session)
	}
}

func TestWhatCantBeKeptOfASessionChangesNothing(t *testing.T) {
	s := open(t)
	must(t, s.Sessions.Insert(t.Context(), aSession("s1")))
	changed := aSession("s1")
	changed.Closed, changed.Reason = true, "over"
	if err := s.Sessions.Save(t.Context(), changed, "nobody", Event{At: epoch, Type: "agent"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("events of a run that isn't there: %v", err)
	}
	if err := s.Sessions.Save(t.Context(), aSession("s2"), ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("a session that isn't there: %v", err)
	}
	if got, err := s.Sessions.Get(t.Context(), "s1"); err != nil || got.Closed {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSessionsAreListedNewestFirstAndClosedOnesForgotten(t *testing.T) {
	s := open(t)
	for _, id := range []string{"s1", "s2", "s3"} {
		must(t, s.Sessions.Insert(t.Context(), aSession(id)))
	}
	closed := aSession("s2")
	closed.Closed, closed.Reason = true, "over"
	must(t, s.Sessions.Save(t.Context(), closed, ""))
	for _, c := range []struct {
		filter SessionFilter
		want   string
	}{
		{SessionFilter{}, "s3 s2 s1 "},
		{SessionFilter{Open: true}, "s3 s1 "},
		{SessionFilter{Limit: 1, After: s.core.seal.number(inSessions, 3)}, "s2 "},
		{SessionFilter{Unit: "other"}, ""},
	} {
		listed, err := s.Sessions.List(t.Context(), c.filter)
		must(t, err)
		got := ""
		for _, one := range listed {
			got += one.ID + " "
		}
		if got != c.want {
			t.Errorf("%+v lists %q, not %q", c.filter, got, c.want)
		}
	}
	turn := aRun(0)
	turn.Session, turn.Turn, turn.CreatedAt = "s2", 1, epoch
	must(t, s.Runs.Insert(t.Context(), turn, Key{}))
	if n, err := s.Sessions.Forget(t.Context(), Owned{}, epoch.Add(time.Hour)); err != nil || n != 0 {
		t.Errorf("forgot %d whose turn goes on, %v", n, err)
	}
	if n, err := s.Sessions.Spent(t.Context(), Owned{}, epoch.Add(time.Hour)); err != nil || n != 0 {
		t.Errorf("would forget %d whose turn goes on, %v", n, err)
	}
	turn.Finished, turn.FinishedAt = true, epoch
	must(t, s.Runs.Save(t.Context(), turn))
	for before, want := range map[time.Time]int64{epoch.Add(time.Hour): 1, epoch.Add(-time.Hour): 0} {
		if n, err := s.Sessions.Spent(t.Context(), Owned{}, before); err != nil || n != want {
			t.Errorf("would forget %d that weren't used since %s, %v", n, before, err)
		}
	}
	if n, err := s.Sessions.Forget(t.Context(), Owned{}, epoch.Add(time.Hour)); err != nil || n != 1 {
		t.Errorf("forgot %d, %v", n, err)
	}
	if _, err := s.Sessions.Get(t.Context(), "s2"); !fault.Is(err, fault.NotFound) {
		t.Errorf("it is there: %v", err)
	}
}
