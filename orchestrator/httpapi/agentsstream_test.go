package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/protocol/agents"
)

// stream asks for a task and returns all of its events.
func (s *server) stream(body string, headers ...string) []httpwire.Event {
	s.t.Helper()
	a := s.do("POST", "/agents/run/stream", body, headers...)
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	return messagesOf(s.t, strings.NewReader(a.body))
}

// messagesOf reads a stream to its end, which has to be a proper one.
func messagesOf(t testing.TB, r io.Reader) (all []httpwire.Event) {
	t.Helper()
	d := httpwire.NewEventReader(r, agenthttp.DefaultLimits().Events())
	for {
		m, err := d.Next()
		if errors.Is(err, io.EOF) && !d.Unfinished() {
			return all
		}
		if err != nil {
			t.Fatalf("%v after %v", err, all)
		}
		all = append(all, m)
	}
}

// terminalOf wants exactly one terminal event, at the end, and every event in the schemas.
func terminalOf[T any](t testing.TB, all []httpwire.Event) (last T) {
	t.Helper()
	for i, m := range all {
		schema := "AgentEvent"
		if agenthttp.EventType(m.Name).Terminal() {
			schema = "AgentAnswer"
			if strings.Contains(m.Data, `"ok":false`) {
				schema = "AgentRefusal"
			}
		}
		if (schema != "AgentEvent") != (i == len(all)-1) {
			t.Errorf("event %d of %d is %+v", i+1, len(all), m)
		}
		var v any
		must(t, json.Unmarshal([]byte(m.Data), &v))
		if found := violations(map[string]any{"$ref": "#/components/schemas/" + schema}, v); len(found) > 0 {
			t.Errorf("%q in %s", found, m.Data)
		}
	}
	if len(all) == 0 {
		t.Fatal("there are no events")
	}
	must(t, json.Unmarshal([]byte(all[len(all)-1].Data), &last))
	return last
}

func TestAStreamTellsOfARunAsItGoesOn(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	c, err := agenthttp.New(agenthttp.Options{URL: s.url, Token: token})
	must(t, err)
	var told []string
	asked := agenthttp.Request{RequestID: "r-1", TaskType: "ACTOR", Inputs: agenthttp.Object(`{"do":"tell"}`)}
	got, err := c.Stream(trusted.Context(t), asked, func(e agenthttp.Event) {
		var data agents.EventData
		must(t, json.Unmarshal(e.Data, &data))
		if data.RequestID != "r-1" || (e.Type == agenthttp.Started) != (data.RunID != "") {
			t.Errorf("%s", e.Data)
		}
		told = append(told, fmt.Sprint(e.Type, data.State, data.Step))
		if data.Step == "final" {
			s.goOn() // so the progress came before the end
		}
	})
	must(t, err)
	want := []string{"started", "progressstarting", "progressrunning", "progresscomplete", "progressfinal"}
	if i := slices.Index(told, "progressrunning"); i > 2 { // a program may be faster than the word that it runs
		told = slices.Insert(slices.Delete(told, i, i+1), 2, "progressrunning")
	}
	if diff := cmp.Diff(want, told); diff != "" || !got.OK || string(got.Outputs) != `{"n":2}` {
		t.Errorf("%s\n%+v", diff, got)
	}
}

func TestManyStreamsHaveOneTerminalEventEach(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	inputs := []string{`{"do":"files"}`, `{"do":"fail"}`, `{}`, `{"do":"wait"}`}
	var all sync.WaitGroup
	for i := range 50 {
		input := inputs[i%len(inputs)]
		all.Go(func() {
			more := ""
			if strings.Contains(input, "wait") {
				more = `,"budgets":{"timeout_ms":10}`
			}
			last := terminalOf[agenthttp.Response](t, s.stream(asks("ACTOR", input, more)))
			if fine := !strings.Contains(input, "fail") && more == ""; last.OK != fine || last.RequestID != "r-1" || last.TaskType != "ACTOR" {
				t.Errorf("%s: %+v", input, last)
			}
		})
	}
	all.Wait()
}

func TestACancelledRunEndsItsStream(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	resp, id := s.open(trusted.Context(t), "/agents/run/stream")
	s.do("POST", "/v1/runs/"+id+"/cancel", "").wants(t, 202)
	defer resp.Body.Close()
	if last := terminalOf[agents.Failed](t, messagesOf(t, resp.Body)); last.Error.Code != "cancelled" || last.RequestID != "r-1" {
		t.Errorf("%+v", last)
	}
}

// open begins a task that goes on until release, and returns when its program runs.
func (s *server) open(ctx context.Context, path string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	answered := make(chan *http.Response, 1)
	go func() {
		resp, err := client.Do(s.request("POST", path, asks("ACTOR", `{"do":"wait"}`), headers...).WithContext(ctx))
		if err != nil {
			resp = nil // it was left
		}
		answered <- resp
	}()
	var page api.Page
	s.until(func() bool {
		page = decode[api.Page](s.t, s.do("GET", "/v1/runs?state=running", "").wants(s.t, 200))
		return len(page.Runs) == 1
	})
	if strings.HasSuffix(path, "sync") {
		return nil, page.Runs[0].ID
	}
	return <-answered, page.Runs[0].ID
}

func TestAClientThatGoesAway(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/agents/run/sync", "/agents/run/stream"} {
		for header, want := range map[string]api.Outcome{
			"X: y": api.WasCancelled, agents.DisconnectHeader + ": cancel": api.WasCancelled,
			agents.DisconnectHeader + ": continue": api.Success,
		} {
			t.Run(path+" "+header, func(t *testing.T) {
				s := newServer(t, nil)
				ctx, leave := contextWithCancel(t)
				resp, id := s.open(ctx, path, header)
				leave()
				if resp != nil {
					defer resp.Body.Close()
				}
				s.until(func() bool { return strings.Contains(s.log.String(), `"route":"`+path+`"`) }) // the request has ended
				if want == api.Success {
					s.goOn()
				}
				var record api.Record
				s.until(func() bool {
					record = decode[api.Record](t, s.do("GET", "/v1/runs/"+id, "").wants(t, 200))
					return record.Outcome != ""
				})
				if record.Outcome != want || strings.Contains(s.log.String(), "request failed") {
					t.Errorf("%s, want %s: %s", record.Outcome, want, s.log)
				}
			})
		}
	}
}

func TestTheEndOfTheServerEndsItsStreams(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	resp, id := s.open(trusted.Context(t), "/agents/run/stream")
	defer resp.Body.Close()
	s.stop()
	last := terminalOf[agents.Failed](t, messagesOf(t, resp.Body))
	if last.Error.Code != "unavailable" || last.RequestID != "r-1" || !strings.Contains(string(last.Provenance), id) {
		t.Errorf("%+v", last)
	}
	record, err := s.svc.Runs.Get(trusted.Context(t), id)
	if err != nil || record.State != api.Running || strings.Contains(s.log.String(), "request failed") {
		t.Errorf("the run is %s, %v: %s", record.State, err, s.log)
	}
}

// stuck is a client that takes nothing until it is let.
type stuck struct {
	*httptest.ResponseRecorder
	let chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.let
	return s.ResponseRecorder.Write(p)
}

func TestARunDoesNotWaitForItsStream(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	w := &stuck{httptest.NewRecorder(), make(chan struct{})}
	served := make(chan struct{})
	r := s.request("POST", "/agents/run/stream", asks("ACTOR", `{"do":"tell"}`))
	go func() {
		defer close(served)
		s.api.Handler().ServeHTTP(w, r)
	}()
	s.goOn()
	s.until(func() bool {
		page := decode[api.Page](t, s.do("GET", "/v1/runs?state=completed", "").wants(t, 200))
		return len(page.Runs) == 1
	})
	if w.Body.Len() != 0 {
		t.Errorf("it was not stuck: %s", w.Body)
	}
	close(w.let)
	<-served
	all := messagesOf(t, w.Body)
	if last := terminalOf[agenthttp.Response](t, all); !last.OK || len(all) != 6 {
		t.Errorf("%v", all)
	}
}
