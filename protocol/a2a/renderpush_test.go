package a2a

import (
	"encoding/json"
	"strings"
	"testing"

	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/agent-on-demand/aod/api"
)

// A push tells of an event what a stream tells of it; of the end, the whole task.
func TestAPushTellsWhatAStreamTells(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.PublicURL = "https://aod.example" })
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
	for event, err := range w.Past(t.Context(), run) {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := server.RenderPush(t.Context(), run, event)
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
