package main

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/agent-on-demand/aod/internal/testing/testkit"
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

// pushTo is the configuration of a push.
func pushTo(url string) string {
	return fmt.Sprintf(`{"url":%q,"token":"canary-token","authentication":{"scheme":"bearer","credentials":"canary-credentials"}}`, url)
}

// pushOf returns the only push of a run, when all that its receiver heard is noted.
func (s *server) pushOf(run string) (push api.Push) {
	s.t.Helper()
	testkit.Eventually(s.t, "the push of run "+run+" is noted", func() bool {
		pushes, err := s.client.Runs.Pushes(context.Background(), run)
		if err != nil || len(pushes) != 1 {
			return false
		}
		push = pushes[0]
		return push.Deliveries.Waiting == 0
	})
	return push
}

// What happens in a task is told to the receiver that came with its message, also over the
// server's death: at least once, in order, until its end.
func TestAReceiverHearsOfATaskOverTheServersDeath(t *testing.T) {
	t.Parallel()
	heard, port := newReceiver(t)
	config := filepath.Join(t.TempDir(), "aod.yaml")
	write(t, "a2a: {push_private: [hook.example=127.0.0.1]}\n", config)
	s := newInside(t, "--config", config, "--retries", "2", "--retry-delay", "100ms")
	s.addWorker("worker", "")
	s.start()
	send := func(url string) (made a2aAnswer, err error) {
		params := fmt.Sprintf(`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"mark":5,"ticks":20}}]},
"configuration":{"returnImmediately":true,"taskPushNotificationConfig":%s}}`, pushTo(url))
		return made, s.a2a(t.Context(), "worker", "SendMessage", params, &made)
	}
	var refused *a2aRefusal
	if _, err := send("http://127.0.0.1:" + port + "/in"); !errors.As(err, &refused) || refused.Code != -32602 || strings.Contains(refused.Message, "127.0.0.1") || !strings.Contains(refused.Message, "url: only https") || !strings.Contains(refused.Message, "a2a.push_private") {
		t.Errorf("a receiver at loopback: %v", err)
	}
	made, err := send("http://hook.example:" + port + "/in")
	if err != nil || made.Task.ID == "" {
		t.Fatal(err)
	}
	id := made.Task.ID
	s.until(id, "has begun", func(r api.Record) bool { return r.StartedAt != nil }) // it may be over already
	testkit.Eventually(t, "the receiver hears that it works", func() bool { told, _ := heard.all(); return len(told) > 0 })
	s.kill()
	s.start()
	if record := s.await(id); record.Outcome != api.Success {
		t.Fatalf("%s %+v", record.Outcome, record.Error)
	}
	testkit.Eventually(t, "the receiver hears of the end", func() bool {
		told, _ := heard.all()
		return len(told) > 0 && strings.HasPrefix(told[len(told)-1], "task ")
	})
	told, bad := heard.all()
	if told[0] != "TASK_STATE_WORKING" || told[len(told)-1] != "task TASK_STATE_COMPLETED with 2" || len(bad) > 0 {
		t.Errorf("told %q, wrong %q", told, bad)
	}
	if push := s.pushOf(id); push.Deliveries.Lost != 0 {
		t.Errorf("%+v", push)
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
