package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// asks is a request of a client that may know tasks.
func asks(t testing.TB, s *Server, tasks bool, method, params string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	known := fmt.Sprintf(meta, Stateless)
	if tasks {
		known = strings.Replace(known, `s":{}`, `s":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1)
	}
	known = strings.Replace(known, `{`, `{"progressToken":"p",`, 1)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{%s,%s}}`, method, params, known)
	return ask(t, s, "POST", body, append(headers, stateless, "Mcp-Method: "+method)...)
}

func TestALongCallIsATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("hello")
		f.hold = true
		s := New(f, Options{})
		began := time.Now()
		w := asks(t, s, true, "tools/call", `"name":"hello","arguments":{}`, "Mcp-Name: hello")
		if took := time.Since(began); took != taskAfter || !contains(w, `"resultType":"task"`, `"taskId":"`+idOf(1)+`"`, `"status":"working"`, `"ttlMs":null`) {
			t.Fatalf("after %v: %s", took, w.Body)
		}
		again := New(f, Options{}) // as after a restart
		if w := asks(t, again, true, "tasks/get", `"taskId":"`+idOf(1)+`"`); !contains(w, `"resultType":"complete"`, `"status":"working"`) {
			t.Error(w.Body)
		}
		f.finish()
		if w := asks(t, again, true, "tasks/get", `"taskId":"`+idOf(1)+`"`); !contains(w, `"status":"completed"`, `"structuredContent":{}`) {
			t.Error(w.Body)
		}
		if w := asks(t, again, true, "tasks/cancel", `"taskId":"`+idOf(1)+`"`); !contains(w, `"result":{`, `"resultType":"complete"`) {
			t.Errorf("one that is over: %s", w.Body)
		}
	})
}

func TestATaskIsCancelled(t *testing.T) {
	f := newFake("hello")
	f.hold = true
	s := New(f, Options{})
	_, err := f.Submit(trusted.Context(t), Submission{Unit: "hello", Metadata: map[string]string{ClientKey: "c"}})
	must(t, err)
	if w := asks(t, s, true, "tasks/cancel", `"taskId":"`+idOf(1)+`"`); w.Code != 200 || len(f.cancelled) != 1 {
		t.Error(w.Body)
	}
	if w := asks(t, s, true, "tasks/get", `"taskId":"`+idOf(1)+`"`); !contains(w, `"status":"cancelled"`) {
		t.Error(w.Body)
	}
}

func TestATaskOfNobody(t *testing.T) {
	f := newFake("hello")
	s := New(f, Options{})
	_, err := f.Submit(trusted.Context(t), Submission{Unit: "hello"}) // of another door
	must(t, err)
	for _, params := range []string{`"taskId":"` + idOf(1) + `"`, `"taskId":"` + idOf(9) + `"`, `"taskId":"x"`, `"taskId":7`, `"x":1`} {
		for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
			if w := asks(t, s, true, method, params); w.Code != 400 || !contains(w, "-32602") {
				t.Errorf("%s %s: %d %s", method, params, w.Code, w.Body)
			}
		}
	}
}

func TestAClientWithoutTasksWaitsAndHearsOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("hello")
		f.hold = true
		time.AfterFunc(35*time.Second, f.finish)
		w := asks(t, New(f, Options{}), false, "tools/call", `"name":"hello","arguments":{}`, "Mcp-Name: hello")
		if told := strings.Count(w.Body.String(), "notifications/progress"); told != 3 || !contains(w, `"message":"running 10s"`, `"structuredContent":{}`) {
			t.Errorf("%d: %s", told, w.Body)
		}
	})
}

func TestAServerThatEndsCancelsNoRun(t *testing.T) {
	f := newFake("hello")
	f.hold = true
	s := New(f, Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, end := context.WithCancel(trusted.Context(t))
	defer end()
	var served sync.WaitGroup
	served.Go(func() {
		server := httpwire.Server{Name: "t", Handler: s, HeaderBytes: 1 << 16, Drain: patience, ErrorLog: slog.New(slog.DiscardHandler), Requests: httpwire.Outliving}
		if err := server.Serve(ctx, listener); err != nil {
			t.Error(err)
		}
	})
	go func() {
		testkit.Eventually(t, "its run is submitted", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.submitted) == 1 })
		end()
	}()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello",%s}}`, fmt.Sprintf(meta, Stateless))
	through := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host, r.RequestURI = "http", listener.Addr().String(), ""
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_ = resp.Write(w)
	})
	w := ask(t, through, "POST", body, stateless, "Mcp-Method: tools/call", "Mcp-Name: hello")
	if !contains(w, `the run goes on`, idOf(1)) || len(f.cancelled) > 0 || f.runs[idOf(1)].State != api.Running {
		t.Errorf("%s, cancelled %v", w.Body, f.cancelled)
	}
	served.Wait()
	http.DefaultClient.CloseIdleConnections()
}

func contains(w *httptest.ResponseRecorder, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(w.Body.String(), part) {
			return false
		}
	}
	return true
}
