package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
)

// addRemote writes a unit whose agent is elsewhere, with further lines below remote.
func (s *server) addRemote(name, url, more string) {
	s.t.Helper()
	write(s.t, "name: "+name+"\nkind: remote\nretries: 1\nremote:\n  url: "+url+"\n"+more, s.units, name, "agent.yaml")
	write(s.t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, s.units, name, "schema.json")
}

// A server that is killed while an agent elsewhere is at work asks it once more, and needs
// no engine for any of that.
func TestAKillDuringACallElsewhere(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	begun := make(chan struct{}, 10)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ID string `json:"request_id"`
		}
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &request)
		mu.Lock()
		asked = append(asked, request.ID)
		first := len(asked) == 1
		mu.Unlock()
		if begun <- struct{}{}; first {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"request_id":"`+request.ID+`","ok":true,"outputs":{"n":1}}`)
	}))
	defer agent.Close()
	s := newServer(t, "--retry-delay", "10ms")
	s.env = []string{"DOCKER_HOST=unix:///nonexistent/docker.sock"}
	s.addRemote("far", agent.URL, "")
	s.start()
	record, err := s.client.Submit(t.Context(), client.Submission{Unit: "far"})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	s.kill()
	s.start()
	record = s.await(record.ID)
	if record.Outcome != api.Success || record.Retries != 1 || !strings.Contains(record.Attempts[0].Error.Message, "the server ended") {
		t.Errorf("%s, error %+v, attempts %+v", record.Outcome, record.Error, record.Attempts)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 2 || asked[0] != record.ID || asked[1] != record.ID {
		t.Errorf("run %s asked as %q", record.ID, asked)
	}
}

// One server's unit is another's agent elsewhere, which its token opens.
func TestAServersUnitsAreAgentsElsewhere(t *testing.T) {
	t.Parallel()
	there, here := newServer(t), newServer(t)
	there.addWorker("worker", "")
	there.start()
	token, err := os.ReadFile(filepath.Join(there.home(), "token"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, string(token), here.data, "secrets", "there")
	here.env = []string{"DOCKER_HOST=unix:///nonexistent/docker.sock"}
	here.addRemote("far", there.url(), "  task_type: WORKER\n  stream: true\n  auth: {secret: there}\n")
	here.addRemote("stranger", there.url(), "  task_type: WORKER\n")
	here.start()
	run := func(unit, input string) api.Record {
		t.Helper()
		record, err := here.client.Submit(context.Background(), client.Submission{Unit: unit, Input: []byte(input)})
		if err != nil {
			t.Fatal(err)
		}
		return here.await(record.ID)
	}
	if record := run("far", `{"ticks":2,"mark":1}`); record.Outcome != api.Success || len(record.Output) < 3 {
		t.Errorf("%s, error %+v, output %s", record.Outcome, record.Error, record.Output)
	}
	if record := run("far", `{"exit":3}`); record.Outcome != api.RemoteError || record.Error.Category != api.CategoryAgent {
		t.Errorf("%s, error %+v", record.Outcome, record.Error)
	}
	if record := run("far", `{"ticks":"two"}`); record.Outcome != api.RemoteError || record.Error.Category != api.CategoryPermanent {
		t.Errorf("%s, error %+v", record.Outcome, record.Error)
	}
	if record := run("stranger", `{}`); record.Outcome != api.RemoteError || !strings.Contains(record.Error.Message, "401") || record.Retries > 0 {
		t.Errorf("%s, error %+v", record.Outcome, record.Error)
	}
	if strings.Contains(here.log(), strings.TrimSpace(string(token))) {
		t.Error("the log has the token")
	}
}
