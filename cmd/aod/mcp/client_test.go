package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/orchestrator/protocol/mcp"
)

// remoteOf returns the service of a server that answers submissions as it is told to, and the
// requests that came.
func remoteOf(t *testing.T, submitted http.HandlerFunc) (mcpRemote, func() []string) {
	var mu sync.Mutex
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requests = append(requests, r.Method+" "+r.URL.RequestURI())
		mu.Unlock()
		submitted(w, r)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{Server: server.URL, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	return mcpRemote{c}, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(requests) }
}

func sayRecord(w http.ResponseWriter, status int, record api.Record) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(record) // of a test
}

func TestAShortCallIsOneRequest(t *testing.T) {
	remote, requests := remoteOf(t, func(w http.ResponseWriter, _ *http.Request) {
		sayRecord(w, http.StatusOK, api.Record{ID: "0198c0de-0000-7000-8000-000000000001", State: api.Completed, Outcome: api.Success, Output: json.RawMessage(`{}`)})
	})
	record, err := remote.Submit(t.Context(), mcp.Submission{Unit: "hello"})
	if err != nil || record.Outcome != api.Success {
		t.Errorf("%+v %v", record, err)
	}
	if got := requests(); !slices.Equal(got, []string{"POST /v1/runs?wait=1s"}) {
		t.Errorf("it makes %q", got)
	}
}

func TestACallThatIsGivenUpAtOnceKnowsItsRun(t *testing.T) {
	for range 10 {
		ctx, giveUp := context.WithCancel(t.Context())
		remote, _ := remoteOf(t, func(w http.ResponseWriter, _ *http.Request) {
			giveUp() // while the server has it
			sayRecord(w, http.StatusAccepted, api.Record{ID: "0198c0de-0000-7000-8000-000000000001", State: api.Running})
		})
		began := time.Now()
		record, err := remote.Submit(ctx, mcp.Submission{Unit: "hello"})
		if err != nil && time.Since(began) > cli.SubmitGrace {
			continue // a busy machine has taken all the time that there is for the answer
		}
		if err != nil || record.ID != "0198c0de-0000-7000-8000-000000000001" {
			t.Errorf("%+v %v", record, err)
		}
		return
	}
	t.Error("no run is ever known")
}
