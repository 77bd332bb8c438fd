package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func aQuestion(run, address string) Question {
	return Question{
		ID: newID(), Run: run, Address: address, Text: "Well?", Show: []byte(`{"a":1}`), Form: []byte(`{}`), Answers: []byte(`["approve"]`),
		Until: epoch.Add(time.Hour), AskedAt: epoch,
	}
}

// asked stores a question of a new run.
func asked(t *testing.T, s *Store) Question {
	t.Helper()
	r := aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	q, err := s.Questions.Open(t.Context(), aQuestion(r.ID, "ask"), event("question"))
	must(t, err)
	return q
}

var (
	yes = []byte(`{"action":"approve"}`)
	no  = []byte(`{"action":"reject"}`)
)

func openIDs(t *testing.T, s *Store, run string) (ids []string) {
	t.Helper()
	questions, err := s.Questions.List(t.Context(), QuestionFilter{Run: run, At: epoch})
	must(t, err)
	for _, q := range questions {
		ids = append(ids, q.ID)
	}
	return ids
}

func TestAQuestionIsOpenedOnce(t *testing.T) {
	s := open(t)
	q := asked(t, s)
	again := aQuestion(q.Run, q.Address)
	again.Text, again.Until = "Another?", time.Time{}
	got, err := s.Questions.Open(t.Context(), again, event("question"))
	must(t, err)
	stored, err := s.Questions.Get(t.Context(), q.ID)
	must(t, err)
	q.Seq, q.Unit, q.Team = stored.Seq, stored.Unit, stored.Team // which the store gives
	for _, found := range []Question{got, stored} {
		if diff := cmp.Diff(q, found); diff != "" {
			t.Error(diff)
		}
	}
	if got := events(t, s, q.Run); len(got) != 1 {
		t.Errorf("events %v", got)
	}
	if diff := cmp.Diff([]string{q.ID}, openIDs(t, s, "")); diff != "" {
		t.Error(diff)
	}
	_, err = s.Questions.Open(t.Context(), aQuestion(newID(), "ask"))
	wantKind(t, err, fault.NotFound)
}

func TestTheFirstAnswerCounts(t *testing.T) {
	s := open(t)
	q := asked(t, s)
	at := epoch.Add(time.Minute)
	must(t, s.Questions.Answer(t.Context(), Key{}, q.ID, yes, "", at, event("question")))
	must(t, s.Questions.Answer(t.Context(), Key{}, q.ID, yes, "", at.Add(time.Second), event("question")))
	wantKind(t, s.Questions.Answer(t.Context(), Key{}, q.ID, no, "", at), fault.Conflict)
	wantKind(t, s.Questions.Answer(t.Context(), Key{}, newID(), yes, "", at), fault.NotFound)
	got, err := s.Questions.Close(t.Context(), q.ID, at) // too late
	must(t, err)
	if string(got.Answer) != string(yes) || !got.AnsweredAt.Equal(at) || !got.ClosedAt.IsZero() {
		t.Errorf("%+v", got)
	}
	if ids := openIDs(t, s, ""); len(ids) > 0 {
		t.Errorf("open: %v", ids)
	}
	if got := events(t, s, q.Run); len(got) != 2 {
		t.Errorf("events %v", got)
	}
}

func TestAnAnswerUnderAKeyIsTakenOnce(t *testing.T) {
	s := open(t)
	q, closed := asked(t, s), asked(t, s)
	key := Key{Value: "resend/k", Fingerprint: "f"}
	must(t, s.Questions.Answer(t.Context(), key, q.ID, yes, "", epoch, event("question")))
	later, err := s.Questions.Open(t.Context(), aQuestion(q.Run, "later"), event("question"))
	must(t, err)
	must(t, s.Questions.Answer(t.Context(), key, later.ID, yes, "", epoch, event("question")))
	if ids := openIDs(t, s, q.Run); len(ids) != 1 || ids[0] != later.ID {
		t.Errorf("open: %v", ids)
	}
	var taken *Taken
	if err := s.Questions.Answer(t.Context(), key, closed.ID, yes, "", epoch); !errors.As(err, &taken) {
		t.Errorf("a question of another run: %v", err)
	}
	_, err = s.Questions.Close(t.Context(), closed.ID, epoch)
	must(t, err)
	late := Key{Value: "resend/late", Fingerprint: "f"}
	wantKind(t, s.Questions.Answer(t.Context(), late, closed.ID, yes, "", epoch), fault.Conflict)
	_, _, err = s.Keys.Get(t.Context(), late.Value)
	wantKind(t, err, fault.NotFound)
}

func TestOfAnswersAtOnceOneCounts(t *testing.T) {
	s := open(t)
	q := asked(t, s)
	var all sync.WaitGroup
	var taken atomic.Int32
	for n := range 8 {
		all.Go(func() {
			if s.Questions.Answer(t.Context(), Key{}, q.ID, fmt.Appendf(nil, `{"note":"%d"}`, n), "", epoch) == nil {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if taken.Load() != 1 {
		t.Errorf("%d answers were taken", taken.Load())
	}
}

func TestAQuestionThatIsOpenNoMore(t *testing.T) {
	s := open(t)
	closed, late := asked(t, s), asked(t, s)
	for range 2 {
		got, err := s.Questions.Close(t.Context(), closed.ID, epoch, event("question"))
		must(t, err)
		if !got.ClosedAt.Equal(epoch) {
			t.Errorf("%+v", got)
		}
	}
	wantKind(t, s.Questions.Answer(t.Context(), Key{}, closed.ID, yes, "", epoch), fault.Conflict)
	wantKind(t, s.Questions.Answer(t.Context(), Key{}, late.ID, yes, "", late.Until), fault.Conflict)
	if got := events(t, s, closed.Run); len(got) != 2 {
		t.Errorf("events %v", got)
	}
	_, err := s.Questions.Close(t.Context(), newID(), epoch)
	wantKind(t, err, fault.NotFound)
}

func TestOpenQuestionsAreListedByTheirRun(t *testing.T) {
	s := open(t)
	first, second := asked(t, s), asked(t, s)
	if diff := cmp.Diff([]string{first.ID, second.ID}, openIDs(t, s, "")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{second.ID}, openIDs(t, s, second.Run)); diff != "" {
		t.Error(diff)
	}
	page, err := s.Questions.List(t.Context(), QuestionFilter{At: epoch, Limit: 1})
	must(t, err)
	rest, err := s.Questions.List(t.Context(), QuestionFilter{At: epoch, After: s.Questions.Behind(page[0])})
	must(t, err)
	if len(page) != 1 || len(rest) != 1 || rest[0].ID != second.ID {
		t.Errorf("%v, then %v", page, rest)
	}
	run, err := s.Runs.Get(t.Context(), first.Run)
	must(t, err)
	must(t, s.Runs.Save(t.Context(), ended(run)))
	if diff := cmp.Diff([]string{second.ID}, openIDs(t, s, "")); diff != "" {
		t.Error("of a run that has ended:", diff)
	}
	wantKind(t, s.Questions.Answer(t.Context(), Key{}, first.ID, yes, "", epoch), fault.Conflict)
	_, err = s.Questions.Open(t.Context(), aQuestion(first.Run, "too late"))
	wantKind(t, err, fault.Conflict)
}

func TestAProgramAsksSoOftenAndNoMore(t *testing.T) {
	s := open(t)
	q := asked(t, s)
	of := func(kind string, n int) error {
		more := aQuestion(q.Run, fmt.Sprint(kind, n))
		more.Kind = kind
		_, err := s.Questions.Open(t.Context(), more)
		return err
	}
	for n := range maxQuestions - 1 {
		must(t, of("input", n))
	}
	wantKind(t, of("input", maxQuestions), fault.TooLarge)
	must(t, of("", maxQuestions)) // a flow is bounded by its steps
	if questions, err := s.Questions.List(t.Context(), QuestionFilter{Run: q.Run, At: epoch}); err != nil || len(questions) != maxQuestions+1 {
		t.Errorf("%d are open, %v", len(questions), err)
	}
}

func TestRunsThatAsk(t *testing.T) {
	s := open(t)
	q := asked(t, s) // whose time is long up
	later := aQuestion(q.Run, "later")
	asking := func() int {
		page, err := s.Runs.List(t.Context(), Filter{Asking: true})
		must(t, err)
		return len(page.Runs)
	}
	if n := asking(); n != 0 {
		t.Errorf("%d runs ask, though the time is up", n)
	}
	later.Until = time.Time{}
	_, err := s.Questions.Open(t.Context(), later)
	must(t, err)
	if n := asking(); n != 1 {
		t.Errorf("%d runs ask", n)
	}
	must(t, s.Questions.Answer(t.Context(), Key{}, later.ID, yes, "", epoch))
	if n := asking(); n != 0 {
		t.Errorf("%d runs ask after the answer", n)
	}
}

func TestUnitsStaySwitchedOff(t *testing.T) {
	s := open(t)
	must(t, s.Units.Disable(t.Context(), "a", epoch))
	must(t, s.Units.Disable(t.Context(), "b", epoch))
	must(t, s.Units.Disable(t.Context(), "b", epoch.Add(time.Hour)))
	must(t, s.Units.Enable(t.Context(), "a"))
	must(t, s.Units.Enable(t.Context(), "a"))
	off, err := s.Units.Switched(t.Context())
	must(t, err)
	if diff := cmp.Diff(map[string]bool{"a": false, "b": true}, off); diff != "" {
		t.Error(diff)
	}
}

func TestOpenQuestionsAreCountedByTeam(t *testing.T) {
	s := open(t)
	ask := func(team string, n int, at time.Time) (q Question) {
		r := aRun(n)
		r.Team = team
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
		for i := range 2 {
			q = aQuestion(r.ID, fmt.Sprint("ask", i))
			q.AskedAt = at.Add(time.Duration(i) * time.Second)
			_, err := s.Questions.Open(t.Context(), q)
			must(t, err)
		}
		return q
	}
	ask("", 1, epoch.Add(time.Minute))
	answered := ask("a", 2, epoch)
	ask("a", 3, epoch.Add(time.Second))
	must(t, s.Questions.Answer(t.Context(), Key{}, answered.ID, yes, "", epoch.Add(2*time.Second)))
	got, err := s.Questions.OpenByTeam(t.Context(), epoch.Add(time.Minute))
	must(t, err)
	want := []OpenQuestions{{"a", 3, epoch}, {"default", 2, epoch.Add(time.Minute)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if late, err := s.Questions.OpenByTeam(t.Context(), epoch.Add(2*time.Hour)); len(late) != 0 || err != nil {
		t.Errorf("%+v whose time is up, %v", late, err)
	}
}
