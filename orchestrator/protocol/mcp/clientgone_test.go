package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// opensAsking begins a session of a client that shows forms.
const opensAsking = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`

const callsHello = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"hello","arguments":{}}}`

// isCancelled reports that a run is cancelled, and why.
func isCancelled(t *testing.T, f *fakeService, why string) {
	t.Helper()
	if r, err := f.Get(trusted.Context(t), idOf(1)); err != nil || r.Outcome != api.WasCancelled || !strings.Contains(r.Error.Message, why) {
		t.Errorf("%s %v %v", r.Outcome, r.Error, err)
	}
}

func TestAClosedStdinTakesItsQuestionsWithIt(t *testing.T) {
	t.Parallel()
	callsStateless := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"hello",%s}}`, capable)
	for name, c := range map[string]struct{ lines, want string }{
		"a question that is shown":       {opensAsking + "\n" + callsHello + "\n", "elicitation/create"},
		"a client that has to come back": {callsStateless + "\n", "input_required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := asking(mayGoOn)
			in, client := io.Pipe()
			out := &testkit.Log{}
			served := make(chan error, 1)
			go func() { served <- New(f, Options{}).ServeStdio(trusted.Context(t), in, out) }()
			_, err := client.Write([]byte(c.lines))
			must(t, err)
			testkit.Eventually(t, "it asks", func() bool { return strings.Contains(out.String(), c.want) })
			must(t, client.Close())
			must(t, <-served)
			isCancelled(t, f, gone.reason)
		})
	}
	t.Run("a question that comes after it", func(t *testing.T) {
		t.Parallel()
		f := newFake("hello")
		f.hold = true
		out := &testkit.Log{}
		in, client := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- New(f, Options{}).ServeStdio(trusted.Context(t), in, out) }()
		_, err := client.Write([]byte(opensAsking + "\n" + callsHello + "\n"))
		must(t, err)
		testkit.Eventually(t, "it runs", func() bool { r, err := f.Get(trusted.Context(t), idOf(1)); return err == nil && r.State == api.Running })
		must(t, client.Close())
		f.mu.Lock()
		r := f.runs[idOf(1)]
		f.mu.Unlock()
		f.ask(r, mayGoOn)
		must(t, <-served)
		isCancelled(t, f, gone.reason)
		if !strings.Contains(out.String(), gone.reason) {
			t.Errorf("the call isn't answered: %s", out)
		}
	})
}

// streaming is a client that reads its streams event by event.
type streaming struct {
	t       *testing.T
	url     string
	session string
}

func newStreaming(t *testing.T, s *Server) *streaming {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	x := &streaming{t: t, url: server.URL + Path}
	response := x.send(trusted.Context(t), http.MethodPost, opensAsking)
	x.session = response.Header.Get(sessionHeader)
	must(t, response.Body.Close())
	return x
}

func (x *streaming) send(ctx context.Context, method, body string, headers ...string) *http.Response {
	x.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, x.url, strings.NewReader(body))
	must(x.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(revisionHeader, "2025-11-25")
	if x.session != "" {
		r.Header.Set(sessionHeader, x.session)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	must(x.t, err)
	return response
}

// event is an event of a stream.
type event struct {
	id   string
	data []byte
}

// next reads a stream up to an event that holds a text.
func next(t *testing.T, stream *bufio.Reader, holds string) (e event) {
	t.Helper()
	for {
		line, err := stream.ReadBytes('\n')
		if err != nil {
			t.Fatalf("no %s: %v", holds, err)
		}
		if id, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			e.id = string(bytes.TrimSpace(id))
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && bytes.Contains(data, []byte(holds)) {
			e.data = bytes.Clone(data)
			return e
		}
	}
}

// droppedWhileAsking calls a tool, and drops the stream when it is asked.
func (x *streaming) droppedWhileAsking() event {
	x.t.Helper()
	ctx, drop := context.WithCancel(trusted.Context(x.t))
	response := x.send(ctx, http.MethodPost, callsHello)
	asked := next(x.t, bufio.NewReader(response.Body), "elicitation/create")
	drop()
	_ = response.Body.Close()
	return asked
}

func TestADroppedStreamLeavesItsQuestionOpen(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(x *streaming, f *fakeService, asked event){
		"answered in the session": func(x *streaming, _ *fakeService, asked event) {
			var request struct{ ID json.RawMessage }
			must(x.t, json.Unmarshal(asked.data, &request))
			response := x.send(trusted.Context(x.t), http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, request.ID))
			must(x.t, response.Body.Close())
		},
		"answered elsewhere": func(x *streaming, f *fakeService, _ event) {
			must(x.t, f.Answer(trusted.Context(x.t), f.asking.open(idOf(1))[0].ID, api.Answer{Action: "approve"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := asking(mayGoOn)
			s := New(f, Options{})
			x := newStreaming(t, s)
			asked := x.droppedWhileAsking()
			answer(x, f, asked)
			var response *http.Response
			testkit.Eventually(t, "the server sees that the stream is cut", func() bool {
				response = x.send(trusted.Context(t), http.MethodGet, "", "Last-Event-ID: "+asked.id)
				if response.StatusCode != http.StatusOK {
					_ = response.Body.Close()
				}
				return response.StatusCode == http.StatusOK
			})
			defer response.Body.Close()
			if got := next(t, bufio.NewReader(response.Body), `"result"`); !bytes.Contains(got.data, []byte(`\"action\":\"approve\"`)) || !bytes.Contains(got.data, []byte(`"id":7`)) {
				t.Errorf("%s", got.data)
			}
			must(t, s.Close())
		})
	}
}

func TestAnEndedSessionTakesItsQuestionsWithIt(t *testing.T) {
	t.Parallel()
	f := asking(mayGoOn)
	x := newStreaming(t, New(f, Options{}))
	x.droppedWhileAsking()
	response := x.send(trusted.Context(t), http.MethodDelete, "")
	must(t, response.Body.Close())
	if response.StatusCode != http.StatusNoContent {
		t.Error(response.Status)
	}
	isCancelled(t, f, gone.reason)
}

func TestADisplacedSessionTakesItsQuestionsWithIt(t *testing.T) {
	t.Parallel()
	f := asking(mayGoOn)
	s := New(f, Options{Sessions: 1})
	x := newStreaming(t, s)
	x.droppedWhileAsking()
	testkit.Eventually(t, "the stream is gone", func() bool {
		s.doors.visits.mu.Lock()
		defer s.doors.visits.mu.Unlock()
		return s.doors.visits.byID[x.session].busy == 0
	})
	x.session = ""
	response := x.send(trusted.Context(t), http.MethodPost, opensAsking)
	must(t, response.Body.Close())
	isCancelled(t, f, gone.reason)
	must(t, s.Close())
}

func TestASessionOfNobodyTakesItsQuestionsWithIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := asking(mayGoOn)
		s := New(f, Options{})
		opened := ask(t, s, "POST", opensAsking)
		session := sessionHeader + ": " + opened.Header().Get(sessionHeader)
		ctx, drop := context.WithCancel(trusted.Context(t))
		go func() { synctest.Wait(); drop() }()
		r := httptest.NewRequestWithContext(ctx, "POST", Path, strings.NewReader(callsHello))
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", sessionHeader: strings.TrimPrefix(session, sessionHeader+": ")} {
			r.Header.Set(name, value)
		}
		s.ServeHTTP(httptest.NewRecorder(), r)
		time.Sleep(sessionTime - time.Second)
		synctest.Wait()
		if r, _ := f.Get(trusted.Context(t), idOf(1)); r.Question == nil || r.Outcome != "" {
			t.Error("it is gone before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		isCancelled(t, f, gone.reason)
		if w := ask(t, s, "POST", fmt.Sprintf(list, ""), session); w.Code != 404 {
			t.Errorf("%d", w.Code)
		}
	})
}
