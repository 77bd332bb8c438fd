package httpapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/protocol/agents"
)

// tripwire is a connection whose Write panics once, at the first bytes that have a text.
type tripwire struct {
	*httptest.ResponseRecorder
	at      string
	tripped bool
}

func (w *tripwire) Write(p []byte) (int, error) {
	if !w.tripped && strings.Contains(string(p), w.at) {
		w.tripped = true
		panic("canary: " + string(p))
	}
	return w.ResponseRecorder.Write(p)
}

// SetReadDeadline and SetWriteDeadline are what a real connection has.
func (w *tripwire) SetReadDeadline(time.Time) error  { return nil }
func (w *tripwire) SetWriteDeadline(time.Time) error { return nil }

func TestAPanicInAStreamIsFollowedByOneTerminalEvent(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"event: started", `"state":"starting"`, "half"} {
		t.Run("at "+at, func(t *testing.T) {
			s := newServer(t, nil)
			w := &tripwire{ResponseRecorder: httptest.NewRecorder(), at: at}
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.api.Handler().ServeHTTP(w, s.request("POST", "/agents/run/stream", asks("ACTOR", `{"do":"tell","say":"canary"}`)))
			}()
			s.goOn()
			<-done
			all := messagesOf(t, w.Body)
			last := terminalOf[agents.Failed](t, all)
			var from agents.Provenance
			unmarshal(t, last.Provenance, &from)
			if last.RequestID != "r-1" || last.TaskType != "ACTOR" || last.Status != agents.StatusFailed || last.OK || last.Error.Code != "internal" || !httpwire.IsRunID(from.RunID) {
				t.Errorf("%+v", last)
			}
			if text := s.log.String(); strings.Contains(text, "canary") || strings.Count(text, `"panic: a value of type string"`) != 1 || !strings.Contains(text, from.RunID) {
				t.Errorf("logged: %s", text)
			}
		})
	}
}

func TestAPanicWhileEventsAreReadIsAnError(t *testing.T) {
	t.Parallel()
	events, wait := httpwire.Pump(trusted.Context(t), streamHandlers{}.feed.Events(trusted.Context(t), "id", 0)) // it has no Service to read from
	var panicked *httpwire.PanicError
	if h := <-events; !errors.As(h.Err, &panicked) {
		t.Errorf("%+v", h)
	}
	wait()
}

// trap is a body that panics when it is read.
type trap struct{ io.Reader }

func (trap) Read([]byte) (int, error) { panic("canary") }

func TestAPanicBeforeARunIsAnAnswerOfTheContract(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for _, way := range []string{"sync", "stream"} {
		r := s.request("POST", "/agents/run/"+way, "{}")
		r.Body = io.NopCloser(trap{})
		w := record(s.api.Handler(), r)
		a := answer{&http.Response{StatusCode: w.Code, Header: w.Header()}, w.Body.String()}
		a.refusedWith(t, 500, "internal")
		if strings.Contains(a.body+s.log.String(), "canary") || !strings.Contains(s.log.String(), "panic: a value of type string") {
			t.Errorf("%s, logged %s", a.body, s.log)
		}
	}
	if page := decode[api.Page](t, s.do("GET", "/v1/runs", "").wants(t, 200)); len(page.Runs) != 0 {
		t.Errorf("%d runs", len(page.Runs))
	}
}
