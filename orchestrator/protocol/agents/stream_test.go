package agents

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// watch is a stream about a run, to a recorder.
func watch(t *testing.T, svc Service) (*progressWriter, *httptest.ResponseRecorder, *noted) {
	t.Helper()
	w, notes := httptest.NewRecorder(), newNotes()
	c := &call{
		w: httpwire.Watch(w), r: httptest.NewRequestWithContext(trusted.Context(t), "POST", "/", nil), notes: &notes.Notes,
		task: &task{Request: agenthttp.Request{RequestID: "r-1", TaskType: "T"}},
	}
	return &progressWriter{call: c, svc: svc, run: "id", out: httpwire.NewEventWriter(w)}, w, notes
}

func TestASilentTaskShowsThatItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w, _ := watch(t, newFake(""))
		events := make(chan eventOrError)
		followed := make(chan bool)
		go func() { followed <- s.follow(trusted.Context(t), events) }()
		time.Sleep(20 * time.Second)
		events <- eventOrError{Value: api.Event{Type: api.EventWarning, Data: []byte(`{"message":"no progress"}`)}}
		events <- eventOrError{Value: api.Event{Type: api.EventEnd, Data: []byte(`{}`)}}
		want := "event: started\ndata: {\"type\":\"started\",\"request_id\":\"r-1\",\"task_type\":\"T\",\"run_id\":\"id\"}\n\n: still here\n\n"
		if here := <-followed; !here || w.Body.String() != want {
			t.Error(cmp.Diff(want, w.Body.String()))
		}
	})
}

func TestAnAttemptThatFailsIsNotTheEnd(t *testing.T) {
	svc := newFake("")
	s, _, _ := watch(t, svc)
	failed := api.Event{Type: api.EventState, Data: []byte(`{"state":"failed"}`)}
	if s.isLast(trusted.Context(t), failed) {
		t.Error("the run goes on")
	}
	svc.record.Outcome = api.Success
	if !s.isLast(trusted.Context(t), failed) {
		t.Error("the run has ended")
	}
}

func TestRunsOfAServerThatEndsAreNotAbandoned(t *testing.T) {
	svc := newFake("")
	h := &handler{svc: svc}
	serving, end := context.WithCancel(trusted.Context(t))
	request, leave := context.WithCancel(httpwire.Outliving(serving))
	leave()
	end()
	h.abandon(request, &task{}, runID)
	if len(svc.cancelled) != 0 {
		t.Error("it was cancelled")
	}
}

func TestAStreamWhoseEventsCannotBeReadSaysSo(t *testing.T) {
	svc, notes := newFake(""), newNotes()
	svc.trouble = errors.New("disk away")
	w := ask(trusted.Context(t), Handler(svc, Options{}), notes, "POST", "/agents/run/stream", asked)
	last := w.Body.String()
	if !strings.Contains(last, "event: final\n") || !strings.Contains(last, `"code":"internal"`) || strings.Contains(last, "disk") {
		t.Errorf("%s", last)
	}
	if len(notes.reports) != 1 || !errors.Is(notes.reports[0], svc.trouble) || !notes.cut {
		t.Errorf("reported %v", notes.reports)
	}
}

func TestAPanicWhileAnAnswerIsMadeIsOneToo(t *testing.T) {
	s, w, notes := watch(t, nil) // it has no Service to ask
	s.finish()
	if last := w.Body.String(); strings.Count(last, "event: final\n") != 1 || !strings.Contains(last, `"code":"internal"`) || len(notes.reports) != 1 {
		t.Errorf("%s, reported %v", last, notes.reports)
	}
}

func TestAStreamTellsOfStatesAndProgress(t *testing.T) {
	svc := newFake(api.Success)
	svc.events = []api.Event{
		{Type: api.EventState, Data: []byte(`{"state":"idle"}`)},
		{Type: api.EventState, Data: []byte(`{"state":"running","attempt":1}`)},
		{Type: api.EventWarning, Data: []byte(`{"message":"canary"}`)},
		{Type: api.EventProgress, Data: []byte(`{"percent":50,"step":"final"}`)},
		{Type: api.EventEnd, Data: []byte(`{}`)},
	}
	w := ask(trusted.Context(t), Handler(svc, Options{}), newNotes(), "POST", "/agents/run/stream", asked)
	var told []string
	reader := httpwire.NewEventReader(w.Body, agenthttp.DefaultLimits().Events())
	for e, err := reader.Next(); err == nil; e, err = reader.Next() {
		told = append(told, e.Name+" "+e.Data)
	}
	want := []string{
		`started {"type":"started","request_id":"r-1","task_type":"WORKER","run_id":"` + runID + `"}`,
		`progress {"type":"progress","request_id":"r-1","state":"running","attempt":1}`,
		`progress {"type":"progress","request_id":"r-1","percent":50,"step":"final"}`,
	}
	if diff := cmp.Diff(want, told[:max(len(told)-1, 0)]); diff != "" || !strings.HasPrefix(told[len(told)-1], `final {"type":"final",`) || w.Header().Get("Content-Type") != httpwire.TypeEvents {
		t.Errorf("%s\n%v", diff, told)
	}
}
