package turns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// house leads the turns of a test, and is the kind of its units: it notes what it is asked for.
type house struct {
	*Registry
	home  string
	asked []string
	fails error // of the next Save
}

func newHouse(t *testing.T, living int) *house {
	h := &house{home: t.TempDir()}
	h.Registry = New(Options{
		Living: living, Logger: slog.New(slog.DiscardHandler),
		Dir:    func(id string) string { return filepath.Join(h.home, id) },
		Cancel: func(run, reason string) { h.note("cancel %s: %s", run, reason) },
		Save: func(row store.Session) error {
			h.note("save %s closed=%t %s", row.ID, row.Closed, row.Reason)
			return h.fails
		},
	})
	return h
}

func (h *house) note(format string, args ...any) {
	h.asked = append(h.asked, fmt.Sprintf(format, args...))
}

// takes returns what was asked since it was called last.
func (h *house) takes() (asked []string) {
	asked, h.asked = h.asked, nil
	return asked
}

func TestATeamAndATokenHaveSoManySessions(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	h.SetBounds(map[string]int{"a": 3}, map[string]int{"ci": 1})
	begin := func(id, token string) error {
		_, err := h.Begin(store.Session{ID: id, Team: "a", MadeBy: token}, h, run.SessionTerms{})
		return err
	}
	for _, one := range []struct{ id, token, refusal string }{
		{"1", "ci", ""}, {"2", "ci", "tokens.ci.sessions"}, {"3", "me", ""}, {"4", "", ""}, {"5", "me", "teams.a.sessions"},
	} {
		err := begin(one.id, one.token)
		if one.refusal == "" && err != nil || one.refusal != "" && (!fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), one.refusal)) {
			t.Errorf("%v: %v", one, err)
		}
	}
	if h.OfTeam("a") != 3 || h.OfToken("ci") != 1 || h.OpenByTeam()["a"] != 3 {
		t.Errorf("%d and %d are open, %v", h.OfTeam("a"), h.OfToken("ci"), h.OpenByTeam())
	}
	h.Find("1").Close("over")
	if err := begin("6", "ci"); err != nil {
		t.Error(err)
	}
}

func (h *house) Conversation(*unit.Unit) (run.SessionTerms, bool, error) {
	panic("nobody asks for it here")
}

func (h *house) EndSession(_ context.Context, id string) error {
	h.note("end %s", id)
	return nil
}

func (h *house) session(t *testing.T, id string, terms run.SessionTerms) *Session {
	t.Helper()
	if err := os.Mkdir(filepath.Join(h.home, id), 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s, err := h.Begin(store.Session{ID: id, Unit: "echo", CreatedAt: now, UsedAt: now}, h, terms)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func admit(t *testing.T, s *Session, id string) {
	t.Helper()
	if err := s.Admit(func() (string, time.Time, error) { return id, time.Now(), nil }); err != nil {
		t.Fatal(err)
	}
}

// rests returns a session that has had one turn, and whose container may live on for a minute.
func (h *house) rests(t *testing.T, resumes bool) *Session {
	t.Helper()
	s := h.session(t, "talk", run.SessionTerms{Idle: time.Minute, Resumes: resumes})
	admit(t, s, "first")
	if _, err := s.Await(trusted.Context(t), "first"); err != nil {
		t.Fatal(err)
	}
	s.Leave("first")
	return s
}

func TestATurnWaitsForTheTurnBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, 1)
		s := h.session(t, "talk", run.SessionTerms{})
		admit(t, s, "first")
		admit(t, s, "second")
		if _, err := s.Await(trusted.Context(t), "first"); err != nil {
			t.Fatal(err)
		}
		s.Keep([]byte(`"of the first"`))
		heard := make(chan string, 1)
		go func() {
			saved, err := s.Await(trusted.Context(t), "second")
			heard <- fmt.Sprintf("%s %v", saved, err)
		}()
		synctest.Wait()
		select {
		case early := <-heard:
			t.Fatalf("the second turn began beside the first: %s", early)
		default:
		}
		s.Leave("first")
		if got := <-heard; got != `"of the first" <nil>` {
			t.Errorf("the second turn: %s", got)
		}
		if got := s.Row().Turns; got != 2 {
			t.Errorf("%d turns are counted", got)
		}
	})
}

func TestATurnThatIsGivenUpWaitsNoLonger(t *testing.T) {
	h := newHouse(t, 1)
	s := h.session(t, "talk", run.SessionTerms{})
	admit(t, s, "first")
	admit(t, s, "second")
	ctx, cancel := context.WithCancelCause(trusted.Context(t))
	why := errors.New("nobody wants it any more")
	cancel(why)
	if _, err := s.Await(ctx, "second"); !errors.Is(err, why) {
		t.Errorf("the wait ends with %v", err)
	}
}

func TestWhatASessionRefuses(t *testing.T) {
	h := newHouse(t, 1)
	s := h.session(t, "talk", run.SessionTerms{})
	notAccepted := errors.New("the queue is full")
	if err := s.Admit(func() (string, time.Time, error) { return "", time.Time{}, notAccepted }); !errors.Is(err, notAccepted) {
		t.Errorf("a turn that wasn't accepted: %v", err)
	}
	for i := range maxTurns {
		admit(t, s, fmt.Sprint(i))
	}
	if err := s.Admit(nil); !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "10 turns of the session wait already") {
		t.Errorf("one turn too many: %v", err)
	}
	s.Close("enough")
	if err := s.Admit(nil); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "the session is closed: enough") {
		t.Errorf("a turn of a closed session: %v", err)
	}
}

func TestThereAreNotAnyNumberOfSessions(t *testing.T) {
	h := newHouse(t, 1)
	for i := range maxOpen {
		if _, err := h.Begin(store.Session{ID: fmt.Sprint(i)}, h, run.SessionTerms{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Begin(store.Session{ID: "more"}, h, run.SessionTerms{}); !fault.Is(err, fault.Busy) {
		t.Errorf("one session too many: %v", err)
	}
	if s := h.Restore(store.Session{ID: "before"}, h, run.SessionTerms{}, nil); h.Find("before") != s {
		t.Error("a session of an earlier process has no room")
	}
}

func TestAClosedSessionGoesWithItsLastTurn(t *testing.T) {
	h := newHouse(t, 1)
	s := h.session(t, "talk", run.SessionTerms{})
	admit(t, s, "first")
	admit(t, s, "second")
	s.Close("the user left")
	s.Close("another reason")
	want := []string{
		"save talk closed=true the user left", "cancel first: the session was closed: the user left", "cancel second: the session was closed: the user left",
		"save talk closed=true the user left", "cancel first: the session was closed: the user left", "cancel second: the session was closed: the user left",
	}
	if diff := cmp.Diff(want, h.takes()); diff != "" {
		t.Errorf("asked of the house (-want +got):\n%s", diff)
	}
	s.Leave("first")
	if h.Find("talk") == nil {
		t.Fatal("the session is over, and a turn isn't")
	}
	s.Leave("second")
	if diff := cmp.Diff([]string{"end talk"}, h.takes()); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(h.home, "talk")); !errors.Is(err, os.ErrNotExist) || h.Find("talk") != nil {
		t.Errorf("the session is still there: %v", err)
	}
}

func TestNothingEndsBeforeItIsStored(t *testing.T) {
	h := newHouse(t, 1)
	h.fails = errors.New("the process ends")
	s := h.session(t, "talk", run.SessionTerms{})
	admit(t, s, "first")
	s.Close("the user left")
	if diff := cmp.Diff([]string{"save talk closed=true the user left"}, h.takes()); diff != "" {
		t.Errorf("asked of the house (-want +got):\n%s", diff)
	}
}

func TestAnIdleContainerEndsAndItsSessionGoesOn(t *testing.T) {
	for name, resumes := range map[string]bool{"a session that resumes": true, "a session that can't resume": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, 1)
				s := h.rests(t, resumes)
				time.Sleep(time.Minute - time.Second)
				synctest.Wait()
				if asked := h.takes(); asked != nil || !h.Show(s.Row()).Live {
					t.Fatalf("before its time: %q", asked)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				want := []string{"end talk"}
				if !resumes {
					want = append(want, "save talk closed=true it was idle for 1m0s, and its program can't take up a session again", "end talk")
				}
				if diff := cmp.Diff(want, h.takes()); diff != "" {
					t.Errorf("asked of the house (-want +got):\n%s", diff)
				}
				if open := h.Find("talk") != nil; open != resumes || h.Show(s.Row()).Live {
					t.Errorf("open: %t, live: %t", open, h.Show(s.Row()).Live)
				}
			})
		})
	}
}

func TestATurnKeepsTheContainerFromItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, 1)
		s := h.rests(t, true)
		time.Sleep(30 * time.Second)
		admit(t, s, "second")
		time.Sleep(time.Hour)
		synctest.Wait()
		if asked := h.takes(); asked != nil {
			t.Errorf("asked of the house: %q", asked)
		}
	})
}

func TestNothingIdleEndsAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, 1)
		h.rests(t, true)
		h.Stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		if asked := h.takes(); asked != nil {
			t.Errorf("asked of the house: %q", asked)
		}
	})
}

func TestTheNextProcessGoesOnWithSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, 1)
		terms := run.SessionTerms{Idle: time.Minute, Resumes: true}
		now := time.Now()
		h.Restore(store.Session{ID: "idle", Turns: 1, UsedAt: now}, h, terms, nil)
		h.Restore(store.Session{ID: "fresh", UsedAt: now}, h, terms, nil)
		lost := h.Restore(store.Session{ID: "lost", Turns: 1, UsedAt: now}, nil, run.SessionTerms{}, errors.New("no such version"))
		busy := h.Restore(store.Session{ID: "busy", Turns: 1, UsedAt: now}, h, terms, nil)
		busy.Rejoin("turn", 1)
		h.GoOn()
		if want := []string{"save lost closed=true its version of the unit is gone"}; !cmp.Equal(want, h.takes()) || h.Find("lost") != nil {
			t.Errorf("a session that can't go on isn't closed: %+v", lost.Row())
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"end idle"}, h.takes()); diff != "" {
			t.Errorf("asked of the house (-want +got):\n%s", diff)
		}
	})
}

func TestWhatClientsSeeOfASession(t *testing.T) {
	h := newHouse(t, 1)
	s := h.session(t, "talk", run.SessionTerms{Idle: time.Hour, Resumes: true})
	see := func(want api.SessionState, live bool) {
		t.Helper()
		if got := h.Show(s.Row()); got.State != want || got.Live != live {
			t.Errorf("state %s, live %t; want %s, %t", got.State, got.Live, want, live)
		}
	}
	see(api.SessionOpen, false)
	admit(t, s, "first")
	_, _ = s.Await(trusted.Context(t), "first")
	see(api.SessionBusy, true)
	s.Leave("first")
	see(api.SessionOpen, true)
	if h.OpenOf(trusted.Context(t), "echo") != 1 || h.OpenOf(trusted.Context(t), "another") != 0 {
		t.Errorf("open sessions: %d with it, %d with another unit", h.OpenOf(trusted.Context(t), "echo"), h.OpenOf(trusted.Context(t), "another"))
	}
	h.CloseUnused(time.Now().Add(-time.Hour), "too old")
	see(api.SessionOpen, true)
	h.CloseUnused(time.Now().Add(time.Hour), "too old")
	see(api.SessionClosed, false)
}

func TestDirectoriesThatNoSessionHasGo(t *testing.T) {
	h := newHouse(t, 1)
	h.session(t, "talk", run.SessionTerms{})
	if err := os.MkdirAll(filepath.Join(h.home, "stray", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := h.RemoveStrays(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(h.home, "*"))
	if want := []string{filepath.Join(h.home, "talk")}; err != nil || !cmp.Equal(want, left) {
		t.Errorf("left: %q, %v", left, err)
	}
}
