package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
)

// receiver hears what happens in tasks.
type receiver struct {
	mu   sync.Mutex
	told []string // "working", "artifact", "task completed", each once for a delivery
	keys []string // those that were heard, in their order
	bad  []string

	events []sdk.Event // each once
}

// newReceiver returns a receiver and the port at which it listens.
func newReceiver(t *testing.T) (r *receiver, port string) {
	r = &receiver{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	_, port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return r, port
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if request.Header.Get("Authorization") != "Bearer canary-credentials" || request.Header.Get("A2A-Notification-Token") != "canary-token" {
		r.bad = append(r.bad, fmt.Sprint(request.Header))
	}
	key := request.Header.Get("Idempotency-Key")
	if slices.Contains(r.keys, key) {
		return
	}
	var told struct {
		Task *struct {
			Status    struct{ State string }
			Artifacts []struct{ ArtifactID string }
		}
		StatusUpdate   *struct{ Status struct{ State string } }
		ArtifactUpdate *struct{ Artifact struct{ ArtifactID string } }
	}
	if err := json.Unmarshal(body, &told); err != nil {
		r.bad = append(r.bad, err.Error())
	}
	var event sdk.StreamResponse
	if err := json.Unmarshal(body, &event); err != nil {
		r.bad = append(r.bad, err.Error())
	}
	r.keys, r.events = append(r.keys, key), append(r.events, event.Event)
	switch {
	case told.Task != nil:
		r.told = append(r.told, fmt.Sprintf("task %s with %d", told.Task.Status.State, len(told.Task.Artifacts)))
	case told.StatusUpdate != nil:
		r.told = append(r.told, told.StatusUpdate.Status.State)
	case told.ArtifactUpdate != nil:
		r.told = append(r.told, "artifact "+told.ArtifactUpdate.Artifact.ArtifactID)
	}
}

func (r *receiver) all() (told, bad []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told), slices.Clone(r.bad)
}

// What happens in a task is told to the receiver that came with its message, also over the
// server's death: at least once, in order, until its end.
func TestAReceiverHearsOfATaskOverTheServersDeath(t *testing.T) {
	t.Parallel()
	heard, port := newReceiver(t)
	config := filepath.Join(t.TempDir(), "aod.yaml")
	write(t, "a2a: {push_private: [hook.example=127.0.0.1]}\n", config)
	s := newServer(t, "--config", config, "--retries", "2", "--retry-delay", "100ms")
	s.addWorker("worker", "")
	s.start()
	send := func(url string) string {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"mark":5,"ticks":20}}]},
"configuration":{"returnImmediately":true,"taskPushNotificationConfig":{"url":%q,"token":"canary-token","authentication":{"scheme":"bearer","credentials":"canary-credentials"}}}}}`, url)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url()+"/a2a/worker", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+s.token)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("A2A-Version", "1.0")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		raw, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if refused := send("http://127.0.0.1:" + port + "/in"); !strings.Contains(refused, "-32602") || strings.Contains(refused, "127.0.0.1") {
		t.Errorf("a receiver at loopback: %s", refused)
	}
	var made struct {
		Result struct{ Task struct{ ID string } }
	}
	said := send("http://hook.example:" + port + "/in")
	if err := json.Unmarshal([]byte(said), &made); err != nil || made.Result.Task.ID == "" {
		t.Fatalf("%v: %s", err, said)
	}
	id := made.Result.Task.ID
	s.until(id, "runs", running)
	eventually(t, "the receiver hears that it works", func() bool { told, _ := heard.all(); return len(told) > 0 })
	s.kill()
	s.start()
	if record := s.await(id); record.Outcome != api.Success {
		t.Fatalf("%s %+v", record.Outcome, record.Error)
	}
	eventually(t, "the receiver hears of the end", func() bool {
		told, _ := heard.all()
		return len(told) > 0 && strings.HasPrefix(told[len(told)-1], "task ")
	})
	told, bad := heard.all()
	if told[0] != "TASK_STATE_WORKING" || told[len(told)-1] != "task TASK_STATE_COMPLETED with 2" || len(bad) > 0 {
		t.Errorf("told %q, wrong %q", told, bad)
	}
	var pushes []api.Push
	eventually(t, "all deliveries are noted", func() bool { // after the receiver has heard them
		var err error
		pushes, err = s.client.Pushes(context.Background(), id)
		return err == nil && len(pushes) == 1 && pushes[0].Deliveries.Waiting == 0
	})
	if pushes[0].Deliveries.Lost != 0 {
		t.Errorf("%+v", pushes)
	}
	if runs := s.active(); len(runs) > 0 {
		t.Errorf("the refused message made a run: %v", runs)
	}
	for where, text := range map[string]string{"log": s.log(), "metrics": s.metrics()} {
		if strings.Contains(text, "canary") || strings.Contains(text, "hook.example") {
			t.Errorf("the %s tells of the receiver", where)
		}
	}
}
