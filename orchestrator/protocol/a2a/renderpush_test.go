package a2a

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/agent-on-demand/aod/api"
)

// A push tells of an event what a stream tells of it; of the end, the whole task.
func TestAPushTellsWhatAStreamTells(t *testing.T) {
	w := newHarness(t, func(o *Options) { o.PublicURL = "https://aod.example" })
	server := New(w.fakeService, w.opts)
	w.hold = true
	w.rpc("echo", "SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"returnImmediately":true}}`)
	w.last(func(r *fakeRun) {
		w.enter(r, api.Starting)
		w.enter(r, api.Running)
		w.tell(r, api.ProgressEvent{Message: "half"})
		w.tell(r, api.ArtifactEvent{ID: "a", Parts: []api.Part{{Text: "one"}}, At: born})
		w.tell(r, api.ArtifactEvent{ID: "a", Parts: []api.Part{{Text: "two"}}, Append: true, Last: true, At: born})
		w.succeed(r, "done")
	})
	run := runID(1)
	var told []string
	for event, err := range w.Past(trusted.Context(t), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := server.RenderPush(trusted.Context(t), run, event)
		if err != nil {
			t.Fatal(err)
		}
		if body == nil {
			continue
		}
		if err := ofProto[pbv1.StreamResponse](body); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		var one map[string]any
		if err := json.Unmarshal(body, &one); err != nil {
			t.Fatal(err)
		}
		switch {
		case one["statusUpdate"] != nil:
			told = append(told, "status "+words(at(one, "statusUpdate", "status", "state"))+words(at(one, "statusUpdate", "status", "message", "parts", 0, "text")))
		case one["artifactUpdate"] != nil:
			word := "artifact "
			if at(one, "artifactUpdate", "append") == true {
				word = "more "
			}
			told = append(told, word+words(at(one, "artifactUpdate", "artifact", "parts", 0, "text")))
		case one["task"] != nil:
			told = append(told, "task "+words(at(one, "task", "status", "state"))+" "+words(at(one, "task", "artifacts", 0, "parts", 1, "text")))
		}
	}
	want := "status TASK_STATE_WORKING, status TASK_STATE_WORKINGhalf, artifact one, more two, task TASK_STATE_COMPLETED two"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("told %s\nwant %s", got, want)
	}
}

func words(value any) string {
	s, _ := value.(string)
	return s
}

// Each event is told by what was told before, and not by all events from the first on: a run may
// have thousands.
func TestPushesOfARunReadEachOfItsEventsOnce(t *testing.T) {
	const parts = 100
	w := newHarness(t, nil)
	server := New(w.fakeService, w.opts)
	w.hold = true
	w.rpc("echo", "SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"returnImmediately":true}}`)
	run := runID(1)
	for range parts {
		w.last(func(r *fakeRun) {
			w.tell(r, api.ProgressEvent{Message: "on"}) // of which no push tells
			w.tell(r, api.ArtifactEvent{ID: "a", Parts: []api.Part{{Text: "one"}}, Append: true, At: born})
		})
	}
	var past []api.Event
	for event := range w.Past(trusted.Context(t), run, 0) {
		if event.Type != api.EventProgress {
			past = append(past, event)
		}
	}
	w.eventsRead.Store(0)
	more := 0
	tell := func(event api.Event) {
		body, _, err := server.RenderPush(trusted.Context(t), run, event)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), `"append":true`) {
			more++
		}
	}
	for _, event := range past {
		tell(event)
	}
	if more != parts-1 {
		t.Errorf("%d parts follow another one", more)
	}
	if most := int64(3 * parts); w.eventsRead.Load() > most { // where one tells where to stop
		t.Errorf("%d events were read, not at most %d", w.eventsRead.Load(), most)
	}
	more = 0
	for range 2 { // as to another receiver, and once more
		tell(past[len(past)-2])
	}
	if more != 2 {
		t.Errorf("%d parts follow another one", more)
	}
	for range 2 * maxPassed {
		w.rpc("echo", "SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"returnImmediately":true}}`)
		var last *fakeRun
		w.last(func(r *fakeRun) { last = r })
		if _, _, err := server.RenderPush(trusted.Context(t), last.record.ID, last.events[0]); err != nil {
			t.Error(err)
		}
	}
	if kept := len(server.pushes.kept.all); kept > maxPassed {
		t.Errorf("%d tasks are kept", kept)
	}
}
