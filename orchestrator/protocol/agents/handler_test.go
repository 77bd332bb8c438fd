package agents

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

const asked = `{"request_id":"r-1","task_type":"WORKER","inputs":{"a":1},"user_id":"ada"}`

func TestATaskIsARunOfTheUnitItNames(t *testing.T) {
	for _, path := range []string{"/agents/run/sync", "/agents/worker/run/sync", "/agents//run/sync", "/agents/w%6frker/run/sync"} {
		svc, notes := newFake(api.Success), newNotes()
		w := ask(trusted.Context(t), Handler(svc, Options{}), notes, "POST", path, asked, "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		if w.Code != 200 || w.Header().Get("AOD-Run") != runID || !strings.Contains(w.Body.String(), `"outputs":{"n":1}`) {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		want := []spool.Submission{{
			Unit: "worker", Input: json.RawMessage(`{"a":1}`), TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			Metadata: map[string]string{"request_id": "r-1", "task_type": "WORKER", "mode": "DEMO", "user_id": "ada"},
		}}
		if diff := cmp.Diff(want, svc.submitted); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if notes.Run != runID || len(notes.Attrs) != 2 || len(notes.reports) != 0 {
			t.Errorf("%s: noted %+v", path, notes)
		}
	}
}

func TestOtherAddressesAreNotTheContracts(t *testing.T) {
	for _, path := range []string{"/", "/agents", "/run/sync", "/agents/run", "/v1/runs", "/health"} {
		w := ask(trusted.Context(t), Handler(newFake(api.Success), Options{}), newNotes(), "POST", path, asked)
		if w.Code != 404 || !strings.Contains(w.Body.String(), `"code":"not_found"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestARefusalEchoesWhatWasReadAndIsReported(t *testing.T) {
	svc, notes := newFake(api.Success), newNotes()
	svc.refuses = fault.New(fault.Busy, "too many")
	w := ask(trusted.Context(t), Handler(svc, Options{}), notes, "POST", "/agents/run/sync", asked)
	var got Failed
	must(t, json.Unmarshal(w.Body.Bytes(), &got))
	if w.Code != 429 || w.Header().Get("Retry-After") == "" || got.RequestID != "r-1" || got.TaskType != "WORKER" || got.Error.Code != "busy" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if len(notes.reports) != 1 || !fault.Is(notes.reports[0], fault.Busy) || notes.cut {
		t.Errorf("reported %v", notes.reports)
	}
}

func TestARefusalBeforeTheHandlerHasTheContractsForm(t *testing.T) {
	raw, err := httpwire.Encode(Refusal(httpwire.ProblemOf(fault.New(fault.Unauthorized, "no token").WithHint("h"))))
	must(t, err)
	want := `{"ok":false,"outputs":{},"status":"error","warnings":["no token"],"error":{"code":"unauthorized","message":"no token","hint":"h"}}`
	var got, wanted any
	must(t, errors.Join(json.Unmarshal(raw, &got), json.Unmarshal([]byte(want), &wanted)))
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
}

// panicking is a service whose Submit panics.
type panicking struct{ *fakeService }

func (panicking) Submit(context.Context, spool.Submission) (api.Record, bool, error) { panic("canary") }

func TestAPanicIsAnAnswerThatEchoesTheTask(t *testing.T) {
	notes := newNotes()
	w := ask(trusted.Context(t), Handler(panicking{newFake("")}, Options{}), notes, "POST", "/agents/run/stream", asked)
	var panicked *httpwire.PanicError
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"request_id":"r-1"`) || strings.Contains(w.Body.String(), "canary") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if len(notes.reports) != 1 || !errors.As(notes.reports[0], &panicked) {
		t.Errorf("reported %v", notes.reports)
	}
}

func TestARunOfAClientThatGoesAwayIsCancelled(t *testing.T) {
	for header, cancelled := range map[string]int{"X: y": 1, DisconnectHeader + ": cancel": 1, DisconnectHeader + ": continue": 0} {
		svc := newFake("")
		ctx, leave := context.WithCancel(trusted.Context(t))
		time.AfterFunc(10*time.Millisecond, leave)
		ask(ctx, Handler(svc, Options{}), newNotes(), "POST", "/agents/run/sync", asked, header)
		if len(svc.cancelled) != cancelled {
			t.Errorf("%s: cancelled %v", header, svc.cancelled)
		}
	}
}

func TestReadiness(t *testing.T) {
	svc := newFake("")
	h := Handler(svc, Options{})
	if w := ask(trusted.Context(t), h, newNotes(), "GET", "/health/ready", ""); w.Code != 200 || w.Body.String() != `{"service":"aod","status":"ready"}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	svc.notReady = fault.New(fault.Internal, "canary")
	if w := ask(trusted.Context(t), h, newNotes(), "GET", "/health/ready", ""); w.Code != 503 || w.Body.String() != `{"service":"aod","status":"degraded"}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestItsPatternsAreThoseOfAServeMux(t *testing.T) {
	mux := http.NewServeMux()
	h := Handler(newFake(api.Success), Options{})
	for _, pattern := range append(Patterns(), ReadyPattern) {
		mux.Handle(pattern, h)
	}
	w := ask(trusted.Context(t), mux, newNotes(), "POST", "/agents/worker/run/sync", asked)
	if w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(trusted.Context(t), mux, newNotes(), "GET", "/agents/run/sync", ""); w.Code != 405 {
		t.Errorf("%d", w.Code)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
